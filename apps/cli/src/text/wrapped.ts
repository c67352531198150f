/** Maximum width of the program's output, unless a single word is longer. */
export const MAX_COLUMNS = 100

/** Breaks a text at blanks. All lines but the first begin with the indent; the first is meant to stand after text of `first` characters. */
export function wrapped(text: string, { first = 0, indent = 0, columns = MAX_COLUMNS } = {}): string {
  const lines: string[] = []
  let line = ''
  let room = columns - first
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > room) {
      lines.push(line)
      line = ''
      room = columns - indent
    }
    line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`)
}
