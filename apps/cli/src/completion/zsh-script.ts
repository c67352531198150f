import type { CommandRow, OptionRow } from './command-table.ts'

/** For zsh 5, after compinit; works from a file in fpath and with `source`. */
export function zshScript(table: readonly CommandRow[]): string {
  return `#compdef thv
# zsh completion of thv. Add to ~/.zshrc after compinit: source <(thv completion zsh)
_thv() {
  local -a commands
  commands=(
${table.flatMap(({ name, aliases, description }) => [name, ...aliases].map((each) => `    ${quoted(`${each}:${description}`)}`)).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'thv command' commands
    return
  fi
  local command="\${words[2]}"
  shift words
  (( CURRENT-- ))
  case "$command" in
${table.map(commandCase).join('\n')}
  esac
}
if [ "\${funcstack[1]}" = _thv ]; then _thv "$@"; else compdef _thv thv; fi
`
}

function commandCase({ name, aliases, options, values }: CommandRow): string {
  const rest = values.length > 0 ? [quoted(`1:value:(${values.join(' ')})`)] : [quoted('*:file:_files')]
  return `    ${[name, ...aliases].join('|')}) _arguments ${[...options.flatMap(optionSpecs), ...rest].join(' ')} ;;`
}

/** `-o[description]:value:(a b)`; each flag may be given again. */
function optionSpecs({ flags, description, takesValue, values }: OptionRow): string[] {
  const action = values.length > 0 ? `(${values.join(' ')})` : '_files'
  const text = description.replace(/[[\]:\\]/g, (character) => `\\${character}`)
  return flags.map((flag) => quoted(`*${flag}[${text}]${takesValue ? `:value:${action}` : ''}`))
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
