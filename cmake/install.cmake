# The installed tree: bin/gearshift, lib/libgearshift.a, lib/libgearshift.so, include/gearshift/, lib/cmake/Gearshift/, lib/pkgconfig/.
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

# For those who build without CMake. Paths are relative to the file, so that the tree may be moved.
set(GEARSHIFT_PC_CUDA)
if(GEARSHIFT_HAS_CUDA)
  set(GEARSHIFT_PC_CUDA "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
file(RELATIVE_PATH GEARSHIFT_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" GEARSHIFT_PC_PREFIX "${GEARSHIFT_PC_PREFIX}")
foreach(name IN ITEMS gearshift gearshift-cpp)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
