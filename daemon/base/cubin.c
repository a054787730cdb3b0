/* Reads the sections of an ELF64 image: the symbol table, the code section of a function, and the function's attribute section,
 * which contains the number of barriers. */
#include "base/cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/sha256.h"

typedef struct image {
  const unsigned char *bytes;
  size_t size;
  Elf64_Ehdr header;
} image;

/* Copies `size` bytes at `offset`, which need not be aligned. Returns false when the bytes are not completely inside the
 * image. */
static bool read_bytes(const image *elf, uint64_t offset, void *to, size_t size) {
  if (offset > elf->size || size > elf->size - offset) return false;
  memcpy(to, elf->bytes + offset, size);
  return true;
}

static bool contains_table(const image *elf, uint64_t offset, uint64_t entry_size, uint64_t count) {
  return offset <= elf->size && entry_size * count <= elf->size - offset;
}

bool rl_cubin_is_complete(const void *cubin, size_t size) {
  image elf = {.bytes = cubin, .size = size};
  const Elf64_Ehdr *header = &elf.header;
  return read_bytes(&elf, 0, &elf.header, sizeof elf.header) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == 190 /* EM_CUDA */ &&
         contains_table(&elf, header->e_shoff, header->e_shentsize, header->e_shnum) &&
         contains_table(&elf, header->e_phoff, header->e_phentsize, header->e_phnum);
}

static bool read_section(const image *elf, uint64_t index, Elf64_Shdr *section) {
  return index < elf->header.e_shnum && elf->header.e_shentsize == sizeof *section && elf->header.e_shoff <= elf->size &&
         read_bytes(elf, elf->header.e_shoff + index * sizeof *section, section, sizeof *section);
}

/* Returns true when the section's contents are inside the image. */
static bool contains_section(const image *elf, const Elf64_Shdr *section) {
  return section->sh_type != SHT_NOBITS && section->sh_offset <= elf->size && section->sh_size <= elf->size - section->sh_offset;
}

static bool is_string_at(const image *elf, const Elf64_Shdr *strings, uint32_t offset, const char *name) {
  size_t length = strlen(name) + 1;
  return offset <= strings->sh_size && length <= strings->sh_size - offset &&
         memcmp(elf->bytes + strings->sh_offset + offset, name, length) == 0;
}

static bool find_symbols(const image *elf, Elf64_Shdr *symbols, Elf64_Shdr *strings) {
  for (uint64_t i = 0; read_section(elf, i, symbols); i++)
    if (symbols->sh_type == SHT_SYMTAB)
      return contains_section(elf, symbols) && read_section(elf, symbols->sh_link, strings) && contains_section(elf, strings);
  return false;
}

/* In an attribute section (.nv.info.FUNCTION), sh_info is the index of the function's code section. The section consists of
 * records; a record is a format byte, an attribute byte and a value. The format determines the size of the value: no byte, one
 * byte, two bytes, or a 16-bit length followed by as many bytes. */
enum { SHT_ATTRIBUTES = 0x70000000, FORMAT_NONE = 1, FORMAT_BYTE = 2, FORMAT_SIZED = 4, ATTRIBUTE_BARRIERS = 0x4c };

static int read_barrier_count_from_attributes(const image *elf, const Elf64_Shdr *section) {
  unsigned char head[4];
  for (uint64_t offset = 0; offset + sizeof head <= section->sh_size; offset += sizeof head) {
    if (!read_bytes(elf, section->sh_offset + offset, head, sizeof head) || head[0] < FORMAT_NONE || head[0] > FORMAT_SIZED)
      break;
    if (head[0] == FORMAT_BYTE && head[1] == ATTRIBUTE_BARRIERS) return head[2];
    if (head[0] == FORMAT_SIZED) offset += head[2] | (uint64_t)head[3] << 8;
  }
  return 0;
}

/* CUDA 13 stores the number of barriers as an attribute, which is absent for 0 barriers. Older toolkits store the number in the
 * flags of the code section. */
static int read_barrier_count(const image *elf, uint64_t index, const Elf64_Shdr *code) {
  int barriers = (int)(code->sh_flags >> 20 & 0x7f);
  Elf64_Shdr section;
  for (uint64_t i = 0; barriers == 0 && read_section(elf, i, &section); i++)
    if (section.sh_type == SHT_ATTRIBUTES && section.sh_info == index && contains_section(elf, &section))
      barriers = read_barrier_count_from_attributes(elf, &section);
  return barriers;
}

static bool read_function(const image *elf, const Elf64_Sym *symbol, rl_cubin_function *function) {
  Elf64_Shdr section;
  if (!read_section(elf, symbol->st_shndx, &section) || !contains_section(elf, &section) || symbol->st_value > section.sh_size ||
      symbol->st_size > section.sh_size - symbol->st_value || symbol->st_size == 0)
    return false;
  function->code = elf->bytes + section.sh_offset + symbol->st_value;
  function->size = symbol->st_size;
  function->barriers = read_barrier_count(elf, symbol->st_shndx, &section);
  return true;
}

/* Reads the header and finds the symbol table and its strings. */
static int open_image(const void *cubin, size_t size, image *elf, Elf64_Shdr *symbols, Elf64_Shdr *strings, rl_error *err) {
  *elf = (image){.bytes = cubin, .size = size};
  if (read_bytes(elf, 0, &elf->header, sizeof elf->header) && memcmp(elf->header.e_ident, ELFMAG, SELFMAG) == 0 &&
      elf->header.e_ident[EI_CLASS] == ELFCLASS64 && find_symbols(elf, symbols, strings))
    return 0;
  return rl_fail(err, RL_INPUT, 0, "the GPU code (%zu bytes) is not a 64-bit ELF image with a symbol table", size);
}

int rl_cubin_find(const void *cubin, size_t size, const char *name, rl_cubin_function *function, rl_error *err) {
  image elf;
  Elf64_Shdr symbols, strings;
  Elf64_Sym symbol;
  if (open_image(cubin, size, &elf, &symbols, &strings, err) < 0) return -1;
  for (uint64_t i = 0; i < symbols.sh_size / sizeof symbol; i++) {
    rl_cubin_function found = {.symbol_index = (uint32_t)i};
    if (!read_bytes(&elf, symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol)) break;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !is_string_at(&elf, &strings, symbol.st_name, name)) continue;
    if (!read_function(&elf, &symbol, &found)) break;
    rl_sha256(found.code, found.size, found.sha256);
    *function = found;
    return 0;
  }
  return rl_fail(err, RL_INPUT, 0, "the GPU code has no function %.128s", name);
}

/* Returns the text at an offset of the string table; NULL if the offset or the end of the text is outside the table. */
static const char *string_at(const image *elf, const Elf64_Shdr *strings, uint32_t offset) {
  if (offset >= strings->sh_size) return NULL;
  const char *text = (const char *)elf->bytes + strings->sh_offset + offset;
  return memchr(text, '\0', strings->sh_size - offset) != NULL ? text : NULL;
}

/* Returns whether the section contains variables, according to its name in the section name string table. */
static bool contains_variables(const image *elf, uint32_t index) {
  Elf64_Shdr section, names;
  if (!read_section(elf, index, &section) || !read_section(elf, elf->header.e_shstrndx, &names) || !contains_section(elf, &names))
    return false;
  const char *name = string_at(elf, &names, section.sh_name);
  return name != NULL && (strcmp(name, ".nv.global") == 0 || strcmp(name, ".nv.global.init") == 0);
}

int64_t rl_cubin_list_variables(const void *cubin, size_t size, rl_cubin_variable *variables, int64_t capacity, rl_error *err) {
  image elf;
  Elf64_Shdr symbols, strings;
  Elf64_Sym symbol;
  int64_t count = 0;
  if (open_image(cubin, size, &elf, &symbols, &strings, err) < 0) return -1;
  for (uint64_t i = 0; i < symbols.sh_size / sizeof symbol; i++) {
    if (!read_bytes(&elf, symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol)) break;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0 || !contains_variables(&elf, symbol.st_shndx))
      continue;
    const char *name = string_at(&elf, &strings, symbol.st_name);
    if (name == NULL) return rl_fail(err, RL_INPUT, 0, "a variable of the GPU code has no name");
    if (count < capacity) variables[count] = (rl_cubin_variable){.name = name, .size = symbol.st_size};
    count++;
  }
  return count;
}
