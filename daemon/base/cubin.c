/* Reads the sections of an ELF64 image: the symbol table, the code section of a function, and the function's attribute section,
 * which contains the number of barriers. */
#include "base/cubin.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

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

static const char *section_name(const image *elf, const Elf64_Shdr *section) {
  Elf64_Shdr names;
  return read_section(elf, elf->header.e_shstrndx, &names) && contains_section(elf, &names)
             ? string_at(elf, &names, section->sh_name)
             : NULL;
}

/* Returns whether the section contains variables, according to its name. */
static bool contains_variables(const image *elf, const Elf64_Shdr *section) {
  const char *name = section_name(elf, section);
  return name != NULL && (strcmp(name, ".nv.global") == 0 || strcmp(name, ".nv.global.init") == 0);
}

enum { STT_RELOCATABLE_OBJECT = 13 /* a variable in relocatable code */ };

/* Returns whether the symbol is a variable of one of the sections of variables. */
static bool is_variable(const image *elf, const Elf64_Sym *symbol) {
  Elf64_Shdr section;
  const int type = ELF64_ST_TYPE(symbol->st_info);
  return (type == STT_OBJECT || type == STT_RELOCATABLE_OBJECT) && symbol->st_size > 0 &&
         read_section(elf, symbol->st_shndx, &section) && contains_variables(elf, &section);
}

/* --- whether the symbols describe all variables ------------------------------------------------------------------------ */

/* Relocatable code has these types of sections for .nv.global and .nv.global.init. */
enum { SHT_GLOBAL = 0x70000007, SHT_GLOBAL_INIT = 0x70000008, MAX_PADDING_BYTES = 255 };

/* Returns whether the section may be memory that keeps its contents after a launch. Code for Blackwell contains
 * sections a second time, under names that begin with .nv.merc. and with processor-specific types. */
static bool may_be_persistent(const image *elf, const Elf64_Shdr *section) {
  const char *name = section_name(elf, section);
  const bool has_own_type = section->sh_type >= SHT_LOPROC && section->sh_type <= SHT_HIPROC;
  if (section->sh_size == 0 || (name != NULL && has_own_type && rl_begins_with(name, ".nv.merc."))) return false;
  if (section->sh_type == SHT_GLOBAL || section->sh_type == SHT_GLOBAL_INIT) return true;
  if ((section->sh_flags & SHF_WRITE) == 0) return false;
  return name == NULL || section->sh_type == SHT_PROGBITS ||
         (!rl_begins_with(name, ".nv.shared.") && !rl_begins_with(name, ".nv.local.") && strcmp(name, ".nv_debug.shared") != 0);
}

static int check_sections(const image *elf, rl_error *err) {
  Elf64_Shdr section;
  int symbol_tables = 0;
  for (uint64_t i = 0; read_section(elf, i, &section); i++) {
    symbol_tables += section.sh_type == SHT_SYMTAB;
    if (symbol_tables > 1) return rl_fail(err, RL_INPUT, 0, "the GPU code has several symbol tables: it must have one");
    if (may_be_persistent(elf, &section) && !contains_variables(elf, &section))
      return rl_fail(err, RL_INPUT, 0,
                     "section %d of the GPU code is writable: only .nv.global, .nv.global.init, .nv.shared and .nv.local may be",
                     (int)i);
  }
  return 0;
}

typedef struct variable_range {
  uint64_t section, begin, bytes;
} variable_range;

static int compare_ranges(const void *a, const void *b) {
  const variable_range *x = a, *y = b;
  if (x->section != y->section) return x->section < y->section ? -1 : 1;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Returns whether the alignment of the next variable, which begins at `begin`, explains the bytes before it. The limit of their
 * number is independent of the image. */
static bool is_padding(uint64_t bytes, uint64_t begin, uint64_t section_alignment) {
  const uint64_t alignment = begin & -begin;
  return bytes <= MAX_PADDING_BYTES && bytes < alignment && bytes < section_alignment;
}

/* Checks one section of variables. ranges: of this and later sections, sorted. Moves *next to the later ones. */
static int check_section_coverage(uint64_t index, const Elf64_Shdr *section, const variable_range *ranges, size_t count,
                                  size_t *next, rl_error *err) {
  uint64_t covered = 0;
  for (; *next < count && ranges[*next].section == index; ++*next) {
    const variable_range *range = &ranges[*next];
    if (range->begin > section->sh_size || range->bytes > section->sh_size - range->begin)
      return rl_fail(err, RL_INPUT, 0, "a variable of the GPU code is not inside its section");
    if (range->begin > covered && !is_padding(range->begin - covered, range->begin, section->sh_addralign)) break;
    if (covered < range->begin + range->bytes) covered = range->begin + range->bytes;
  }
  if (covered == section->sh_size) return 0;
  return rl_fail(err, RL_INPUT, 0, "the bytes at offset %llu of section %d of the GPU code belong to no variable",
                 (unsigned long long)covered, (int)index);
}

/* Checks that variables contain every byte of their sections, except padding. */
static int check_coverage(const image *elf, const Elf64_Shdr *symbols, rl_error *err) {
  Elf64_Sym symbol;
  Elf64_Shdr section;
  size_t count = 0, next = 0;
  int rc = 0;
  const uint64_t symbol_count = symbols->sh_size / sizeof symbol;
  variable_range *ranges = calloc(symbol_count + 1, sizeof *ranges);
  if (ranges == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the variables of the GPU code");
  for (uint64_t i = 0; i < symbol_count; i++)
    if (read_bytes(elf, symbols->sh_offset + i * sizeof symbol, &symbol, sizeof symbol) && is_variable(elf, &symbol))
      ranges[count++] = (variable_range){symbol.st_shndx, symbol.st_value, symbol.st_size};
  qsort(ranges, count, sizeof *ranges, compare_ranges);
  for (uint64_t i = 0; rc == 0 && read_section(elf, i, &section); i++)
    if (contains_variables(elf, &section)) rc = check_section_coverage(i, &section, ranges, count, &next, err);
  free(ranges);
  return rc;
}

int64_t rl_cubin_list_variables(const void *cubin, size_t size, rl_cubin_variable *variables, int64_t capacity, rl_error *err) {
  image elf;
  Elf64_Shdr symbols, strings;
  Elf64_Sym symbol;
  int64_t count = 0;
  if (open_image(cubin, size, &elf, &symbols, &strings, err) < 0 || check_sections(&elf, err) < 0 ||
      check_coverage(&elf, &symbols, err) < 0)
    return -1;
  for (uint64_t i = 0; i < symbols.sh_size / sizeof symbol; i++) {
    if (!read_bytes(&elf, symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol)) break;
    if (!is_variable(&elf, &symbol)) continue;
    const char *name = string_at(&elf, &strings, symbol.st_name);
    if (name == NULL) return rl_fail(err, RL_INPUT, 0, "a variable of the GPU code has no name");
    if (count < capacity) variables[count] = (rl_cubin_variable){.name = name, .size = symbol.st_size};
    count++;
  }
  return count;
}
