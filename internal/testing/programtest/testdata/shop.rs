// A Rust program with what is hard to symbolise: generics, inlined closures, trait objects.
use std::collections::BTreeMap;

trait Item {
    fn price(&self, copies: u64) -> u64;
}

struct Book {
    name: String,
}

impl Item for Book {
    #[inline(never)]
    fn price(&self, copies: u64) -> u64 {
        (0..self.name.len() as u64 * copies).map(|i| twice(i) ^ i).sum()
    }
}

fn twice(n: u64) -> u64 {
    (n * n).wrapping_add(n >> 3) * 2
}

#[inline(never)]
fn total<T: Copy + std::ops::Add<Output = T> + Default>(items: &[T]) -> T {
    items.iter().fold(T::default(), |sum, item| sum + *item)
}

fn main() {
    let items: Vec<Box<dyn Item>> = std::env::args().map(|name| Box::new(Book { name }) as Box<dyn Item>).collect();
    let mut stock = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        *stock.entry(i % 7).or_insert(0) += item.price(100);
    }
    println!("{:?} {} {}", stock, total(&[1, 2, 3]), total(&[0.5, 0.1]));
}
