// A C++ program with what is hard to symbolise: templates, inlined calls, overloads, anonymous namespaces, lambdas.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace shop {

template <typename T>
struct Basket {
  std::vector<T> items;
  __attribute__((noinline)) T total() const {
    T sum{};
    for (const auto &item : items) sum += item;
    return sum;
  }
};

namespace {
inline long square(long n) { return n * n + (n >> 3); }

inline long twice(long n) { return square(n) + square(n + 1); }

__attribute__((noinline)) long price(long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += twice(i) ^ i;
  return sum;
}
}  // namespace

__attribute__((noinline)) long price(const std::string &name, int copies) {
  return price(static_cast<long>(name.size()) * copies);
}

}  // namespace shop

extern "C" __attribute__((noinline)) long plain_c(long n) { return shop::price(std::string("sold"), static_cast<int>(n)) + 1; }

int main(int argc, char **argv) {
  shop::Basket<long> basket;
  shop::Basket<double> discounts;
  std::map<std::string, long> stock;
  auto add = [&](const char *name) __attribute__((noinline)) { stock[name] += shop::price(name, argc); };
  for (int i = 0; i < 100 * argc; i++) {
    basket.items.push_back(plain_c(i));
    discounts.items.push_back(0.1 * i);
    add(argv[0]);
  }
  std::sort(basket.items.begin(), basket.items.end(), [](long a, long b) { return a > b; });
  std::printf("%ld %f %zu\n", basket.total(), discounts.total(), stock.size());
}
