// gearshift VERB [MODEL] [options]: collects words, calls the library, prints what comes back.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "arguments.h"
#include "help.h"
#include "output.h"
#include "report/terminal.h"
#include "report/usage.h"

namespace gearshift::cli {

namespace {

ErrorInfo no_verb(const std::string& found) {
  std::vector<std::string_view> names;
  std::string all;
  for (const VerbSpec& verb : all_verbs()) {
    names.push_back(verb.name);
    all += (all.empty() ? "" : ", ") + std::string(verb.name);
  }
  const std::string near = found.empty() ? "" : did_you_mean(found, names);
  return {
      ErrorCode::usage, found.empty() ? "gearshift" : shown(found),     found.empty() ? "no verb" : "an unknown verb",
      "one of " + all,  near.empty() ? "see `gearshift --help`" : near, {}};
}

std::vector<std::string> variables_here() {
  std::vector<std::string> names;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

int print(const std::string& text) {
  return print_result(Call{}, {}, [&](size_t) { return text; });
}

int command(const std::vector<std::string>& words) {
  if (words.empty()) return fail(no_verb(""));
  if (words[0] == "--help" || words[0] == "-h") return print(overview_help(terminal_width(stdout)));
  if (words[0] == "--help=markdown") return print(options_page());
  if (words[0] == "--version") return print("gearshift " GEARSHIFT_VERSION "\n");
  const VerbSpec* verb = find_verb(words[0]);
  if (verb == nullptr) return fail(no_verb(words[0]));

  Result<Call> call = read_arguments(*verb, {words.begin() + 1, words.end()});
  if (call.ok() && call->options.count("help") != 0) return print(verb_help(*verb, terminal_width(stdout)));
  if (verb->run == nullptr) {
    return fail({ErrorCode::usage,
                 std::string(verb->name),
                 "a verb that is not available yet in this version",
                 "another verb",
                 "see `gearshift --help`",
                 {}});
  }
  if (!call.ok()) return fail(call.error());
  Result<Options> options =
      complete_options(std::move(call->options), [](const char* name) { return std::getenv(name); });
  if (!options.ok()) return fail(options.error());
  call->options = heard_by(verb->verb, *std::move(options));
  call->quiet = is_set(*call, "quiet");
  call->verbose = is_set(*call, "verbose");
  for (const std::string& variable : unknown_variables(variables_here()))
    note(*call, "note: no option has the variable " + shown(variable));
  log_options(*call);
  return verb->run(*call);
}

// A descriptor that was closed by the caller would be given to the next file opened, and results would land in it.
void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1) (void)open("/dev/null", descriptor == 2 ? O_WRONLY : O_RDONLY);
  }
}

int one_line(const char* what) { return fail({ErrorCode::runtime, "gearshift", shown(what), "", "", {}}); }

}  // namespace

int guarded(int argc, char** argv) {
  occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write, which says so
  try {
    return command({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::bad_alloc&) {
    std::fputs("gearshift: error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    return one_line(error.what());
  } catch (...) {
    return one_line("an unknown exception");
  }
  return 1;
}

}  // namespace gearshift::cli

int main(int argc, char** argv) { return gearshift::cli::guarded(argc, argv); }
