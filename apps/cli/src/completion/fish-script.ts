import type { CommandRow, OptionRow } from './command-table.ts'

/** For fish 3. */
export function fishScript(table: readonly CommandRow[]): string {
  const lines = table.flatMap((row) => {
    const isThis = `__fish_seen_subcommand_from ${names(row).join(' ')}`
    return [
      ...names(row).map((name) => `complete -c thv -f -n __fish_use_subcommand -a ${name} -d ${quoted(row.description)}`),
      ...row.options.map((option) => `complete -c thv -n ${quoted(isThis)} ${optionFlags(option)}`),
      ...(row.values.length > 0 ? [`complete -c thv -f -n ${quoted(isThis)} -a ${quoted(row.values.join(' '))}`] : []),
    ]
  })
  return `# fish completion of thv. Once: thv completion fish > ~/.config/fish/completions/thv.fish
${lines.join('\n')}
`
}

function optionFlags({ flags, description, takesValue, values }: OptionRow): string {
  const written = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
  const value = values.length > 0 ? [`-x -a ${quoted(values.join(' '))}`] : takesValue ? ['-r'] : []
  return [...written, ...value, `-d ${quoted(description)}`].join(' ')
}

function names({ name, aliases }: CommandRow): string[] {
  return [name, ...aliases]
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
