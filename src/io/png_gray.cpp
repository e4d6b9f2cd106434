#include "io/png_gray.hpp"

#include <fmt/format.h>
#include <png.h>

#include <cstring>

#include "tarsus/base/error.hpp"
#include "tarsus/io/text_number.hpp"

namespace tarsus {

namespace {

/// State that must outlive libpng's long jumps.
struct Decoder {
  std::string_view bytes;
  long long most = 0;
  std::size_t at = 0;
  GrayImage image;
  std::vector<std::uint8_t> rgb;
  std::vector<png_bytep> rows;
  std::string error;
};

void take_bytes(png_structp png, png_bytep out, png_size_t count) {
  Decoder& d = *static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > d.bytes.size() - d.at) png_error(png, "the file ends inside the picture");
  std::memcpy(out, d.bytes.data() + d.at, count);
  d.at += count;
}

void keep_error(png_structp png, png_const_charp text) {
  static_cast<Decoder*>(png_get_error_ptr(png))->error = text;
  png_longjmp(png, 1);
}

void pass_over(png_structp, png_const_charp) {}

/// Decodes every pixel to 8-bit red, green, blue. An error leaves this function by a long jump, so nothing in it may
/// need a destructor.
void decode(png_structp png, png_infop info, Decoder& d) {
  png_set_read_fn(png, &d, take_bytes);
  png_read_info(png, info);
  const long long width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  if (width * height > d.most) png_error(png, "too many pixels");
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  d.image.width = static_cast<int>(width);
  d.image.height = static_cast<int>(height);
  const std::size_t row = png_get_rowbytes(png, info);
  d.rgb.resize(row * static_cast<std::size_t>(height));
  for (std::size_t r = 0; r < static_cast<std::size_t>(height); ++r) d.rows.push_back(d.rgb.data() + r * row);
  png_read_image(png, d.rows.data());
}

/// Decodes; false after an error, whose text is then in `d`.
bool run(png_structp png, png_infop info, Decoder& d) {
  if (setjmp(png_jmpbuf(png))) return false;
  decode(png, info, d);
  return true;
}

}  // namespace

GrayImage parse_png_gray(std::string_view bytes, const std::string& name, long long most) {
  Decoder d;
  d.bytes = bytes, d.most = most;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, keep_error, pass_over);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const bool good = info && run(png, info, d);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!good) {
    throw InputError(Location{name, 0, 0, {}},
                     fmt::format("picture {}: {}", quote(name), d.error.empty() ? "out of memory" : d.error));
  }
  const std::size_t count = static_cast<std::size_t>(d.image.width) * static_cast<std::size_t>(d.image.height);
  d.image.pixels.resize(count);
  for (std::size_t i = 0; i < count; ++i) d.image.pixels[i] = d.rgb[3 * i];
  return std::move(d.image);
}

}  // namespace tarsus
