#include "worker/code/cubin.h"

#include <elf.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

typedef struct image {
  const unsigned char *bytes;
  size_t size;
  Elf64_Ehdr header;
} image;

/* Copies `size` bytes at `offset`, which may be unaligned; false when they are not all inside the image. */
static bool read_at(const image *from, uint64_t offset, void *to, size_t size) {
  if (offset > from->size || size > from->size - offset) return false;
  memcpy(to, from->bytes + offset, size);
  return true;
}

static bool read_section(const image *from, uint64_t index, Elf64_Shdr *section) {
  return index < from->header.e_shnum && from->header.e_shentsize == sizeof *section && from->header.e_shoff <= from->size &&
         read_at(from, from->header.e_shoff + index * sizeof *section, section, sizeof *section);
}

/* Returns true when the section's contents lie inside the image. */
static bool contains(const image *from, const Elf64_Shdr *section) {
  return section->sh_type != SHT_NOBITS && section->sh_offset <= from->size &&
         section->sh_size <= from->size - section->sh_offset;
}

static bool has_name(const image *from, const Elf64_Shdr *strings, uint32_t offset, const char *name) {
  size_t length = strlen(name) + 1;
  return offset <= strings->sh_size && length <= strings->sh_size - offset &&
         memcmp(from->bytes + strings->sh_offset + offset, name, length) == 0;
}

static bool find_symbols(const image *from, Elf64_Shdr *symbols, Elf64_Shdr *strings) {
  for (uint64_t i = 0; read_section(from, i, symbols); i++)
    if (symbols->sh_type == SHT_SYMTAB)
      return contains(from, symbols) && read_section(from, symbols->sh_link, strings) && contains(from, strings);
  return false;
}

/* An attribute section (.nv.info.FUNCTION) refers to the function's code section by sh_info. Its records: a format byte, an
 * attribute byte, then by format no value, one byte, two bytes, or a 16-bit length and that many bytes. */
enum { SHT_ATTRIBUTES = 0x70000000, FORMAT_NONE = 1, FORMAT_BYTE = 2, FORMAT_SIZED = 4, ATTRIBUTE_BARRIERS = 0x4c };

static int barriers_of_attributes(const image *from, const Elf64_Shdr *section) {
  unsigned char head[4];
  for (uint64_t offset = 0; offset + sizeof head <= section->sh_size; offset += sizeof head) {
    if (!read_at(from, section->sh_offset + offset, head, sizeof head) || head[0] < FORMAT_NONE || head[0] > FORMAT_SIZED) break;
    if (head[0] == FORMAT_BYTE && head[1] == ATTRIBUTE_BARRIERS) return head[2];
    if (head[0] == FORMAT_SIZED) offset += head[2] | (uint64_t)head[3] << 8;
  }
  return 0;
}

/* CUDA 13 stores the number as an attribute, or omits it for 0 barriers; older toolkits store it in the code section's flags. */
static int barriers_of_code(const image *from, uint64_t index, const Elf64_Shdr *code) {
  int barriers = (int)(code->sh_flags >> 20 & 0x7f);
  Elf64_Shdr section;
  for (uint64_t i = 0; barriers == 0 && read_section(from, i, &section); i++)
    if (section.sh_type == SHT_ATTRIBUTES && section.sh_info == index && contains(from, &section))
      barriers = barriers_of_attributes(from, &section);
  return barriers;
}

static bool locate(const image *from, const Elf64_Sym *symbol, rl_cubin_function *function) {
  Elf64_Shdr section;
  if (!read_section(from, symbol->st_shndx, &section) || !contains(from, &section) || symbol->st_value > section.sh_size ||
      symbol->st_size > section.sh_size - symbol->st_value || symbol->st_size == 0)
    return false;
  function->code = from->bytes + section.sh_offset + symbol->st_value;
  function->size = symbol->st_size;
  function->barriers = barriers_of_code(from, symbol->st_shndx, &section);
  return true;
}

static void hash(rl_cubin_function *function) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, function->code, function->size);
  sodium_bin2hex(function->sha256, sizeof function->sha256, digest, sizeof digest);
}

int rl_cubin_find(const void *cubin, size_t size, const char *name, rl_cubin_function *function, rl_error *err) {
  image from = {.bytes = cubin, .size = size};
  Elf64_Shdr symbols, strings;
  if (!read_at(&from, 0, &from.header, sizeof from.header) || memcmp(from.header.e_ident, ELFMAG, SELFMAG) != 0 ||
      from.header.e_ident[EI_CLASS] != ELFCLASS64 || !find_symbols(&from, &symbols, &strings))
    return rl_fail(err, RL_INPUT, 0, "%zu bytes of GPU code are no 64-bit ELF image with symbols", size);
  Elf64_Sym symbol;
  for (uint64_t i = 0; i < symbols.sh_size / sizeof symbol; i++) {
    rl_cubin_function found = {.symbol = (uint32_t)i};
    if (!read_at(&from, symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol)) break;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !has_name(&from, &strings, symbol.st_name, name)) continue;
    if (!locate(&from, &symbol, &found)) break;
    hash(&found);
    *function = found;
    return 0;
  }
  return rl_fail(err, RL_INPUT, 0, "the GPU code has no function %.128s", name);
}
