#include "pickle.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "tarsus/io/text_number.hpp"

namespace tarsus {
namespace {

using PickleKind = PickleValue::Kind;
using Pickled = std::shared_ptr<PickleValue>;
constexpr std::size_t kMostPickled = 8'000'000;
constexpr int kMostPickleDepth = 32;

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Pickled run() {
    for (;;) {
      const auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == '.') {
        if (stack_.size() != 1) fail("the pickle must contain one value, but has several or none");
        return stack_[0];
      }
      step(op);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(Location{file_, 0, 0, {}}, fmt::format("byte {}: {}", at_, what));
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the pickle ends within a value");
    const std::string_view out = bytes_.substr(at_, std::size_t(count));
    at_ += std::size_t(count);
    return out;
  }
  std::uint64_t size(std::size_t width) {
    std::uint64_t out = 0;
    const std::string_view b = take(width);
    for (std::size_t i = 0; i < width; ++i) out |= std::uint64_t(static_cast<unsigned char>(b[i])) << (8 * i);
    return out;
  }

  Pickled made(PickleKind kind) {
    if (++count_ > kMostPickled) fail(fmt::format("more than {} values", kMostPickled));
    auto out = std::make_shared<PickleValue>();
    out->kind = kind;
    return out;
  }
  void push(Pickled v) { stack_.push_back(std::move(v)); }
  void push_number(double x) {
    push(made(PickleKind::number));
    stack_.back()->number = x;
  }
  void push_text(PickleKind kind, std::string_view text) {
    push(made(kind));
    stack_.back()->text = std::string(text);
  }
  Pickled pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back())) fail("a value is missing");
    Pickled out = std::move(stack_.back());
    stack_.pop_back();
    return out;
  }
  std::vector<Pickled> pop_to_mark() {
    if (marks_.empty()) fail("a mark is missing");
    const auto from = stack_.begin() + std::ptrdiff_t(marks_.back());
    std::vector<Pickled> out(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return out;
  }
  /// Adds values to the container on top of the stack. No container can contain itself, because recall() refuses lists
  /// and dicts.
  void add(PickleKind kind, std::vector<Pickled> values) {
    if (stack_.empty() || stack_.back()->kind != kind) fail("a list or dict is missing");
    PickleValue& to = *stack_.back();
    int& depth = depth_[&to];
    for (Pickled& v : values) {
      const auto inner = depth_.find(v.get());
      if (inner != depth_.end()) depth = std::max(depth, inner->second + 1);
      if (depth > kMostPickleDepth) fail(fmt::format("nested deeper than {}", kMostPickleDepth));
      to.items.push_back(std::move(v));
    }
  }
  void push_tuple(std::vector<Pickled> values) {
    push(made(PickleKind::tuple));
    add(PickleKind::tuple, std::move(values));
  }
  std::vector<Pickled> pop_some(std::size_t n) {
    std::vector<Pickled> out(n);
    for (std::size_t i = n; i-- > 0;) out[i] = pop();
    return out;
  }

  void memo(std::uint64_t key) {
    if (stack_.empty()) fail("a value is missing");
    memo_[key] = stack_.back();
  }
  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail("a reference to a value that is not defined yet");
    if (found->second->kind == PickleKind::dict ||
        found->second->kind == PickleKind::list)  // it could be put inside itself
      fail("a list or dict that is referenced twice is not supported");
    push(found->second);
  }

  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) fail("the pickle ends within a name");
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  void global(const std::string& module, const std::string& name) {
    // numpy 2 renamed these modules.
    const bool core = module == "numpy.core.multiarray" || module == "numpy._core.multiarray";
    const bool numeric = module == "numpy.core.numeric" || module == "numpy._core.numeric";
    if (module == "numpy" && (name == "ndarray" || name == "dtype")) return push_text(PickleKind::type, name);
    if ((core && (name == "_reconstruct" || name == "scalar")) || (numeric && name == "_frombuffer"))
      return push_text(PickleKind::function, name);
    fail(fmt::format("the pickle needs {}.{}, which is not run: only numbers, lists and NumPy arrays are read",
                     quote(module), quote(name)));
  }

  void step(unsigned char op) {
    switch (op) {
      case 0x80: take(1); return;  // protocol
      case 0x95: take(8); return;  // frame
      case 'N': return push(made(PickleKind::none));
      case 0x88: return push_number(1);
      case 0x89: return push_number(0);
      case 'K': return push_number(double(size(1)));
      case 'M': return push_number(double(size(2)));
      case 'J': return push_number(double(std::int32_t(size(4))));
      case 0x8a: return long_number(std::size_t(size(1)));
      case 'G': return float_number();
      case 0x8c: return push_text(PickleKind::text, take(size(1)));
      case 'X': return push_text(PickleKind::text, take(size(4)));
      case 0x8d: return push_text(PickleKind::text, take(size(8)));
      case 'C': return push_text(PickleKind::bytes, take(size(1)));
      case 'B': return push_text(PickleKind::bytes, take(size(4)));
      case 0x8e:
      case 0x96: return push_text(PickleKind::bytes, take(size(8)));
      case ']': return push(made(PickleKind::list));
      case ')': return push(made(PickleKind::tuple));
      case '}': return push(made(PickleKind::dict));
      case '(': marks_.push_back(stack_.size()); return;
      case 't': return push_tuple(pop_to_mark());
      case 0x85: return push_tuple(pop_some(1));
      case 0x86: return push_tuple(pop_some(2));
      case 0x87: return push_tuple(pop_some(3));
      case 'a': return add(PickleKind::list, pop_some(1));
      case 'e': return add(PickleKind::list, pop_to_mark());
      case 's': return add(PickleKind::dict, pop_some(2));
      case 'u': return add_pairs();
      case 0x94: return memo(memo_.size());
      case 'q': return memo(size(1));
      case 'r': return memo(size(4));
      case 'h': return recall(size(1));
      case 'j': return recall(size(4));
      case 'c': {
        const std::string module(line());
        return global(module, std::string(line()));
      }
      case 0x93: {
        const std::vector<Pickled> names = pop_some(2);
        return global(names[0]->text, names[1]->text);
      }
      case 'R': return call();
      case 'b': return build();
      default: fail(fmt::format("opcode {:#04x} is not supported", op));
    }
  }

  void add_pairs() {
    std::vector<Pickled> values = pop_to_mark();
    if (values.size() % 2 != 0) fail("a key without a value");
    add(PickleKind::dict, std::move(values));
  }
  void long_number(std::size_t width) {
    if (width > 8) fail("a whole number has more than 64 bits");
    std::uint64_t bits = size(width);
    if (width > 0 && width < 8 && (bits >> (8 * width - 1)) != 0) bits |= ~std::uint64_t(0) << (8 * width);
    push_number(double(std::int64_t(bits)));
  }
  void float_number() {
    const std::string_view b = take(8);  // big-endian
    std::uint64_t bits = 0;
    for (const char c : b) bits = bits << 8 | static_cast<unsigned char>(c);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    push_number(value);
  }

  /// Evaluates a call of a function that global() accepted, with the arguments that NumPy writes.
  void call() {
    const Pickled arguments = pop(), function = pop();
    const std::vector<Pickled>& a = arguments->items;
    if (arguments->kind != PickleKind::tuple) fail("arguments are missing");
    if (function->kind == PickleKind::type && function->text == "dtype" && !a.empty())
      return push_text(PickleKind::type, a[0]->text);
    if (function->kind != PickleKind::function) fail("an object that is not a function is called");
    if (function->text == "_reconstruct") return push(made(PickleKind::array));
    if (function->text == "scalar" && a.size() == 2) {
      const std::vector<double> one = numbers_of(*a[0], a[1]->text);
      if (one.size() != 1) fail("a number does not have the size of its type");
      return push_number(one[0]);
    }
    if (function->text == "_frombuffer" && a.size() >= 3) {
      if (a.size() > 3 && a[3]->text != "C") fail("arrays in Fortran order are not supported");
      return push_array(*a[1], *a[2], a[0]->text);
    }
    fail("a call has arguments that NumPy does not write");
  }

  /// Applies NumPy's state: (version, shape, type, Fortran order, bytes) of an array, (version, byte order, …) of a
  /// type.
  void build() {
    const Pickled state = pop();
    const std::vector<Pickled>& s = state->items;
    if (stack_.empty() || state->kind != PickleKind::tuple) fail("a state is missing");
    if (stack_.back()->kind == PickleKind::type) {
      if (s.size() > 1 && s[1]->text == ">") fail("big-endian arrays are not supported");
      return;
    }
    if (stack_.back()->kind != PickleKind::array || s.size() != 5)
      fail("a state is set on an object that is not an array");
    if (s[3]->number != 0) fail("arrays in Fortran order are not supported");
    stack_.pop_back();
    const Pickled shape = s[1];
    push_array(*s[2], *shape, s[4]->text);
  }

  void push_array(const PickleValue& type, const PickleValue& shape, const std::string& bytes) {
    Pickled out = made(PickleKind::array);
    out->numbers = numbers_of(type, bytes);
    double count = 1;
    for (const Pickled& n : shape.items) {
      if (!(n->number >= 0 && n->number < 1e9)) fail("the shape of an array contains an invalid size");
      out->shape.push_back(std::size_t(n->number)), count *= n->number;
    }
    if (count != double(out->numbers.size())) fail("the bytes of an array do not match its shape");
    push(std::move(out));
  }

  std::vector<double> numbers_of(const PickleValue& type, const std::string& bytes) const {
    std::string name = type.text;
    if (!name.empty() && (name[0] == '<' || name[0] == '=' || name[0] == '|')) name.erase(0, 1);
    const auto as = [&]<class E>(E value) {
      if (bytes.size() % sizeof value != 0) fail("the bytes of an array do not match its type");
      std::vector<double> out(bytes.size() / sizeof value);
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        out[i] = double(value);
      }
      return out;
    };
    if (type.kind == PickleKind::type && name == "f8") return as(double());
    if (type.kind == PickleKind::type && name == "f4") return as(float());
    if (type.kind == PickleKind::type && name == "i8") return as(std::int64_t());
    if (type.kind == PickleKind::type && name == "i4") return as(std::int32_t());
    fail(fmt::format("arrays of type {} are not supported; f8, f4, i8 and i4 are", quote(type.text)));
  }

  std::string_view bytes_;
  std::string file_;
  std::size_t at_ = 0, count_ = 0;
  std::vector<Pickled> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Pickled> memo_;
  std::unordered_map<const PickleValue*, int> depth_;
};

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  for (std::size_t i = 0; kind == PickleKind::dict && i + 1 < items.size(); i += 2) {
    if (items[i]->kind == PickleKind::text && items[i]->text == key) return items[i + 1].get();
  }
  return nullptr;
}

bool looks_like_pickle(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

std::shared_ptr<const PickleValue> read_pickle(std::string_view bytes, const std::string& file) {
  return PickleMachine(bytes, file).run();
}

}  // namespace tarsus
