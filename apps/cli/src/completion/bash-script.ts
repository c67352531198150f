import type { CommandRow, OptionRow } from './command-table.ts'

/** For bash 3.2 and newer, with or without the bash-completion package. */
export function bashScript(table: readonly CommandRow[]): string {
  return `# bash completion of thv. Add to ~/.bashrc: source <(thv completion bash)
_thv() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" options="" values=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ${quoted(table.flatMap(({ name, aliases }) => [name, ...aliases]))} -- "$current"))
    return
  fi
  case "$command:$previous" in
${table.flatMap((row) => row.options.filter(({ takesValue }) => takesValue).map((option) => valueCase(row, option))).join('\n')}
  esac
  case "$command" in
${table.map((row) => `    ${names(row).join('|')}) options=${quoted(row.options.flatMap(({ flags }) => flags))} values=${quoted(row.values)} ;;`).join('\n')}
  esac
  if [ "\${current#-}" != "$current" ]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ -n "$values" ]; then
    if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "$values" -- "$current")); fi
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _thv thv
`
}

function valueCase(row: CommandRow, { flags, values }: OptionRow): string {
  const patterns = names(row).flatMap((name) => flags.map((flag) => `${name}:${flag}`))
  const words = values.length > 0 ? `-W ${quoted(values)}` : '-f'
  return `    ${patterns.join('|')}) COMPREPLY=($(compgen ${words} -- "$current")); return ;;`
}

function names({ name, aliases }: CommandRow): string[] {
  return [name, ...aliases]
}

/** Names and values of ours hold no quotes. */
function quoted(words: readonly string[]): string {
  return `'${words.join(' ')}'`
}
