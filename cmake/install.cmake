# The installed tree: bin/gearshift, lib/libgearshift.a, lib/libgearshift.so, include/gearshift/, lib/cmake/Gearshift/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS gearshift gearshift_c EXPORT GearshiftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET gearshift_command)
  install(TARGETS gearshift_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS gearshift_launch RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gearshift)
install(DIRECTORY include/gearshift DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT GearshiftTargets NAMESPACE Gearshift:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Gearshift)
configure_package_config_file(cmake/GearshiftConfig.cmake.in ${PROJECT_BINARY_DIR}/GearshiftConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Gearshift)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/GearshiftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/GearshiftConfig.cmake ${PROJECT_BINARY_DIR}/GearshiftConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Gearshift)
