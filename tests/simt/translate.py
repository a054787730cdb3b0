#!/usr/bin/env python3
"""translate.py FROM TO [NAME=VALUE...]: translates CUDA C++ into C++ for the emulator (emulator.h). Four constructs are no C++:

  __shared__ T a[N], b;        T (&a)[N] and T &b, references to the block's shared memory
  extern __shared__ T a[];     T *a, a pointer to the dynamic shared memory
  kernel<<<config>>>(...)      simt::launcher(config)(kernel)(...)
  asm("op.x {%0, %1}, [%2];" : outputs : inputs)
                               simt::ptx::op_x(%0, %1, %2): an instruction is a function of its operands (ptx.h); an instruction
                               without a function does not compile

cuda.h implements the rest of CUDA. Line numbers stay the same. NAME=VALUE gives an enumerator another value: with smaller limits,
a few images exercise code that needs hundreds of images on a GPU."""
import re
import sys
from pathlib import Path


def without_comments(text):
    def blank(match):
        token = match.group(0)
        return token if token[0] in "\"'" else " " + "\n" * token.count("\n")
    return re.sub(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", blank, text, flags=re.S)


def split(text, separator):
    """Splits at the separators that are outside of brackets and strings."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (c in "([{<") - (c in ")]}>")
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]]]


def closing_parenthesis(text, opening):
    """Returns the index of the parenthesis that closes the one at index `opening`."""
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise SystemExit(f"no closing parenthesis: {text[opening:opening + 60]}")


def with_same_line_count(translation, original):
    return translation + "\n" * (original.count("\n") - translation.count("\n"))


def translate_shared_declaration(match):
    """Translates a declaration of __shared__ variables; group 1 of the match is `extern`, group 2 the type and the variables."""
    extern, declaration = match.group(1), match.group(2)
    aligned = r"(?:__align__|alignas)\s*\(([^()]*)\)"
    alignment = (re.findall(aligned, declaration) or ["1"])[0]
    first, *others = split(re.sub(aligned, "", declaration), ",")
    value_type, first = re.fullmatch(r"(.*?)(\w+\s*(?:\[.*\])?)", first, re.S).groups()
    translated = []
    for variable in [first, *others]:
        name, extent = re.fullmatch(r"(\w+)\s*(.*)", variable, re.S).groups()
        if extern:
            translated.append(f"{value_type.strip()} *const {name} = simt::dynamic_shared<{value_type.strip()}, {alignment}>();")
        else:
            translated.append(f"typedef {value_type.strip()} simt_{name} {extent};")
            translated.append(f"simt_{name} &{name} = simt::shared<simt_{name}, {alignment}>([] {{}});")
    return with_same_line_count(" ".join(translated), match.group(0))


def parse_operands(section):
    """Returns the C++ expressions of a section of asm(), such as outputs or inputs."""
    return [re.fullmatch(r'(?:\[\w+\]\s*)?"[^"]*"\s*\((.*)\)', operand, re.S).group(1)
            for operand in split(section, ",") if operand]


def translate_instruction(text, values):
    """Translates one PTX instruction. values[i]: C++ expression of operand %i."""
    name, _, rest = text.strip(" {}").partition(" ")
    if name == ".reg":
        return rest.replace(".pred", "bool") + ";"
    rest = re.sub(r"[{}\[\]]", "", rest)
    rest = re.sub(r"%%(\w+)", r"simt::ptx::special::\1", rest)
    rest = re.sub(r"%(\d+)", lambda m: f"({values[int(m.group(1))]})", rest)
    return f"simt::ptx::{re.sub(r'[^A-Za-z0-9]+', '_', name)}({rest});"


def expand_wgmma_macros(text):
    """Expands the macros of hopper/wgmma.cuh, whose expansions are parts of asm(): registers, and operands with sums."""
    def registers(match):
        return '"' + ", ".join(f"%{i}" for i in range(int(match.group(1)))) + '"'

    def sums(match):
        count, name, first = int(match.group(1)), match.group(2), int(match.group(3))
        return ", ".join(f'"+f"({name}[{i}])' for i in range(first, first + count))
    text = re.sub(r"#define WGMMA_(?:.*\\\n)*.*", lambda match: "\n" * match.group(0).count("\n"), text)
    return re.sub(r"\bWGMMA_(\d+)\((\w+), (\d+)\)", sums, re.sub(r"\bWGMMA_REGISTERS_(\d+)\b", registers, text))


def translate_asm(text):
    translated = []
    while found := re.search(r"\basm\s*(?:volatile)?\s*\(", text):
        end = closing_parenthesis(text, found.end() - 1)
        code, *sections = split(text[found.end():end], ":")
        values = [value for section in sections[:2] for value in parse_operands(section)]
        lines = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', code)).replace(r"\n", " ").replace(r"\t", " ").split(";")
        body = " ".join(translate_instruction(line, values) for line in lines if line.strip(" {}"))
        translated += [text[:found.start()], with_same_line_count("do { " + body + " } while (0)", text[found.start():end])]
        text = text[end + 1:]
    return "".join(translated) + text


def translate(text):
    text = without_comments(text)
    text = re.sub(r"(\bextern\s+)?\b__shared__\s+([^;]+);", translate_shared_declaration, text)
    text = re.sub(r"(\b[A-Za-z_][\w:]*(?:<[\w\s,:*&]*>)?)\s*<<<(.+?)>>>\s*\(", r"simt::launcher(\2)(\1)(", text, flags=re.S)
    return translate_asm(expand_wgmma_macros(text))


def set_enumerator(text, name, value):
    """Replaces the value of the enumerator, which must be defined exactly once."""
    text, found = re.subn(rf"\b{name} = \d+", f"{name} = {value}", text)
    if found != 1:
        raise SystemExit(f"{name} is defined {found} times")
    return text


source, target = Path(sys.argv[1]), Path(sys.argv[2])
text = translate(source.read_text(encoding="utf-8"))
for setting in sys.argv[3:]:
    text = set_enumerator(text, *setting.split("="))
target.write_text(f'#line 1 "{source}"\n' + text, encoding="utf-8")
