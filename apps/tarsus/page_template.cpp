// The viewer's page, python/tarsus/view/page.html, embedded in the program, which needs no other files.
#include <cstddef>
#include <string_view>

__asm__(
    ".pushsection .rodata\n"
    "tarsus_page_begin: .incbin \"" TARSUS_PAGE
    "\"\n"
    "tarsus_page_end: .byte 0\n"
    ".popsection\n");
extern "C" const char tarsus_page_begin[] __attribute__((visibility("hidden")));
extern "C" const char tarsus_page_end[] __attribute__((visibility("hidden")));

namespace tarsus::app {

std::string_view page_template();  // declared as in command.hpp, whose headers are not needed here
std::string_view page_template() { return {tarsus_page_begin, std::size_t(tarsus_page_end - tarsus_page_begin)}; }

}  // namespace tarsus::app
