// The torch that the extension is built for.
#pragma once
#include <string_view>

namespace cdynamo {

// Older than 2.minor.
constexpr bool torchIsOlderThan(int minor) {
  std::string_view text = CDYNAMO_TORCH_VERSION;
  int number = 0;
  for (size_t i = text.find('.') + 1; i < text.size() && text[i] >= '0' && text[i] <= '9'; i++) number = number * 10 + (text[i] - '0');
  return text.substr(0, 2) == "2." && number < minor;
}

}  // namespace cdynamo
