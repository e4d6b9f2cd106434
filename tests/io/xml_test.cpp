#include "tarsus/io/xml.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/bad_input.hpp"
#include "support/temporary_folder.hpp"

namespace tarsus {
namespace {

XmlDocument parse(std::string text, DiagnosticSink& sink) {
  return XmlDocument::parse(std::move(text), "test.xml", sink);
}

void refused(const std::string& text, int line, const std::string& words) {
  DiagnosticSink sink;
  expect_refused([&] { parse(text, sink); }, line, words, text.substr(0, 60));
}

TEST(Xml, KnowsLinesColumnsAndPaths) {
  DiagnosticSink sink;
  const XmlDocument document = parse("<a>\r\n  <b name='x'\n     size = '1 2'/>\r\n\t<c/><c file=\"f\"/>\n</a>", sink);
  const XmlElement b = document.root().child("b");
  EXPECT_EQ(b.where().text(), "test.xml:2:3: a/b[x]");
  EXPECT_EQ(b.where("size").text(), "test.xml:3:6: a/b[x]");
  EXPECT_EQ(b.where("none").text(), "test.xml:2:3: a/b[x]");
  EXPECT_EQ(document.root().children("c").at(1).where().text(), "test.xml:4:6: a/c[f]");
}

TEST(Xml, ByteOrderMarkCarriageReturnsAndEndsAreLetPass) {
  for (const std::string& text : {std::string("\xEF\xBB\xBF<a/>"), std::string("<a/>\r\n"), std::string("<a/>\0\0", 6),
                                  std::string("\n \n<?xml version=\"1.0\"?>\n<a/>")}) {
    DiagnosticSink sink;
    EXPECT_EQ(parse(text, sink).root().name(), "a");
  }
  DiagnosticSink sink;
  parse(std::string("<a/>\0", 5), sink);
  parse("\n<?xml version='1.0'?><a/>", sink);
  const Diagnostics notes = sink.take();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].message.find("1 NUL"), std::string::npos);
  EXPECT_NE(notes[1].message.find("blanks before"), std::string::npos);
  EXPECT_EQ(parse("\xEF\xBB\xBF<a/>", sink).root().where().column, 1);
}

TEST(Xml, Malformed) {
  refused("", 1, "empty");
  refused("  \n ", 1, "empty");
  refused("\xEF\xBB\xBF", 1, "empty");
  refused(std::string("\0\0", 2), 1, "empty");
  refused("<?xml version='1.0'?>\n", 2, "no element");
  refused("<!-- only this -->", 1, "no element");
  refused("<a>\n<b>\n</b>", 3, "inside <a>, opened at line 1");
  refused("<a>\n<b x='1", 2, "closing quote");
  refused("<a>\n<b x", 2, "no '='");
  refused("<a>\n<b ", 2, "ends inside the tag");
  refused("<a>\n<!-- x", 2, "never closed");
  refused("<a>\n<b></a>", 2, "</a> does not match <b>, opened at line 2");
  refused("<a/>\n</a>", 2, "closes nothing");
  refused("<a/>\n<b/>", 2, "second root");
  refused("<a/>\nhello", 2, "outside of the root");
  refused("hello<a/>", 1, "outside of the root");
  refused("<a>\n <b x='1' y='2' x='3'/></a>", 2, "'x' is given twice");
  refused("<a>\n <b x='1'y='2'/></a>", 2, "no blank before the attribute 'y'");
  refused("<a x=1/>", 1, "does not begin with a quote");
  refused("<a x='<'/>", 1, "'<' inside the value");
  refused("<a>\n< b/></a>", 2, "not followed by a name");
  refused("<a>\n<b/ ></a>", 2, "not followed by '>'");
  refused("<a>\n<b></b x></a>", 2, "closing tag");
  refused("<a>\n&foo;</a>", 2, "not an entity");
  refused("<a x='&'/>", 1, "not an entity");
  refused("<a x='&#0;'/>", 1, "not an entity");
  refused("<a x='&#xD800;'/>", 1, "not an entity");
  refused("<a 1x='2'/>", 1, "beginning of an attribute");
  refused("<a><![CDATA[x</a>", 1, "CDATA section is never closed");
}

TEST(Xml, BytesThatAreNotText) {
  refused("<a>\n\xFF</a>", 2, "0xff is not UTF-8");
  refused("<a x='\xC0\xAF'/>", 1, "0xc0 is not UTF-8");
  refused("<a x='\xED\xA0\x80'/>", 1, "0xed is not UTF-8");
  refused("<a x='\xF5\x80\x80\x80'/>", 1, "not UTF-8");
  refused("<a x='caf\xE9'/>", 1, "not UTF-8");
  refused(std::string("<a>\n\0</a>", 9), 2, "control byte 0x00");
  refused("<a>\x01</a>", 1, "control byte 0x01");
  refused(std::string("\xFF\xFE<\0a\0/\0>\0", 10), 1, "UTF-16");
  DiagnosticSink sink;
  EXPECT_EQ(parse("<a name='Zoë 手'/>", sink).root().text("name"), "Zoë 手");
}

TEST(Xml, DocumentTypesAndEntityBombs) {
  std::string bomb = "<?xml version='1.0'?>\n<!DOCTYPE a [\n<!ENTITY l0 'lol'>\n";
  for (int i = 1; i < 30; ++i)
    bomb += "<!ENTITY l" + std::to_string(i) + " '&l" + std::to_string(i - 1) + ";&l" + std::to_string(i - 1) + ";'>\n";
  refused(bomb + "]>\n<a>&l29;</a>", 2, "document type");
  refused("<!DOCTYPE html><a/>", 1, "document type");
  refused("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", 1, "document type");
}

TEST(Xml, DeepNestingLoadsToTheLimitAndIsRefusedBeyond) {
  const auto nested = [](int depth) {
    std::string text = "<a>";
    for (int i = 1; i < depth; ++i) text += "<b>";
    for (int i = 1; i < depth; ++i) text += "</b>";
    return text + "</a>";
  };
  DiagnosticSink sink;
  EXPECT_TRUE(bool(parse(nested(1'000), sink).root()));
  const XmlDocument deep = parse(nested(20'000), sink);
  XmlElement e = deep.root();
  while (e.first_child()) e = e.first_child();
  EXPECT_EQ(e.path(), "a/…/b/b/b/b/b/b");
  refused(nested(20'001), 1, "deeper than 20000");
  refused(nested(1'000'000), 1, "deeper than 20000");
  std::string open;
  for (int i = 0; i < 1'000'000; ++i) open += "<b>";
  refused(open, 1, "deeper than 20000");
}

TEST(Xml, CountsAndSizesHaveLimits) {
  std::string many = "<a>\n";
  for (int i = 0; i < 1'000'001; ++i) many += "<b/>";
  refused(many + "</a>", 2, "more than 1000000 elements");
  std::string wide = "<a";
  for (int i = 0; i < 101; ++i) wide += " x" + std::to_string(i) + "='1'";
  refused(wide + "/>", 1, "more than 100 attributes");
  refused("<a>" + std::string(33u << 20, ' ') + "</a>", 0, "expected at most");
}

TEST(Xml, FilesThatAreNone) {
  const auto file = [](const std::string& name, int line, const std::string& words) {
    DiagnosticSink sink;
    expect_refused([&] { XmlDocument::load(name, sink); }, line, words, name);
  };
  file("/no/such/file.xml", 0, "no such file");
  file("/", 0, "is a directory");
  file("/dev/zero", 0, "not a regular file");
  file(std::string(5'000, 'x'), 0, "not a file name");
  const test::TemporaryFolder own;
  const std::filesystem::path big = own.path() / "tarsus_xml_test_big.xml";
  {
    std::ofstream out(big);
    out << "<a/>";
  }
  std::filesystem::resize_file(big, 100u << 20);  // a hole: nothing is written
  file(big.string(), 0, "has 104857600 bytes");
  std::filesystem::remove(big);
}

TEST(Xml, TypedReadingReportsAtTheAttribute) {
  DiagnosticSink sink;
  const XmlDocument document = parse("<a>\n<b n='x' v='1 2' i='2.5' w='maybe'\n good='1 2 3'/></a>", sink);
  const XmlElement b = document.root().child("b");
  double n = 7;
  int i = 7;
  bool w = false;
  Vec3d v{7, 7, 7}, good{};
  EXPECT_FALSE(b.read("n", n));
  EXPECT_FALSE(b.read("v", v));
  EXPECT_FALSE(b.read("i", i));
  EXPECT_FALSE(b.read("w", w));
  EXPECT_FALSE(b.read("none", n));
  EXPECT_TRUE(b.read("good", good));
  EXPECT_EQ(n, 7);
  EXPECT_EQ(i, 7);
  EXPECT_EQ(v.x, 7);
  EXPECT_EQ(good.z, 3);
  try {
    sink.throw_if_failed();
    FAIL();
  } catch (const InputError& error) {
    ASSERT_EQ(error.diagnostics().size(), 4u);  // every error, not only the first
    EXPECT_EQ(error.diagnostics()[1].text(),
              "test.xml:2:10: error: attribute 'v': '1 2' has 2 numbers, expected 3 (a/b)");
  }
}

TEST(Xml, NamesWhatNobodyRead) {
  DiagnosticSink sink;
  const XmlDocument document = parse("<a>\n<b x='1' y='2'><c/><d/></b></a>", sink);
  const XmlElement b = document.root().child("b");
  b.ignore({"x"});
  b.child("c");
  b.report_unread(Severity::warning);
  const Diagnostics found = sink.take();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text(), "test.xml:2:10: warning: <b> has no attribute 'y' (a/b)");
  EXPECT_EQ(found[1].text(), "test.xml:2:20: warning: <d> is not an element of <b> (a/b/d)");
}

TEST(DiagnosticSink, RepeatsAreSummedUpAndErrorsHaveAnEnd) {
  DiagnosticSink sink;
  for (int i = 1; i <= 50; ++i) sink.add(Severity::warning, {"f", i, 1, ""}, "same");
  const Diagnostics found = sink.take();
  ASSERT_EQ(found.size(), static_cast<std::size_t>(DiagnosticSink::kMaxRepeats) + 1);
  EXPECT_EQ(found.back().message, "30 more places: same");
  for (int i = 1; i < DiagnosticSink::kMaxErrors; ++i) sink.add(Severity::error, {"f", i, 1, ""}, "bad");
  sink.add(Severity::error, {"f", 1, 1, ""}, "bad");  // again: counts once
  EXPECT_THROW(sink.add(Severity::error, {"f", 1000, 1, ""}, "bad"), InputError);
}

}  // namespace
}  // namespace tarsus
