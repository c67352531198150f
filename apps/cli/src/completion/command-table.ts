import type { Command, Option } from 'commander'

/** The words that a shell can complete. All three scripts are made from it. */
export interface CommandRow {
  readonly name: string
  readonly aliases: readonly string[]
  readonly description: string
  readonly options: readonly OptionRow[]
  /** Values of its first argument, when there are only some; else the shell offers files. */
  readonly values: readonly string[]
}

export interface OptionRow {
  /** Such as `-o` and `--output`. */
  readonly flags: readonly string[]
  readonly description: string
  readonly takesValue: boolean
  readonly values: readonly string[]
}

/** Pure. Hidden commands and options stay hidden. */
export function commandTable(program: Command): CommandRow[] {
  const help = program.createHelp()
  return help.visibleCommands(program).map((command) => ({
    name: command.name(),
    aliases: command.aliases(),
    description: command.description(),
    options: help.visibleOptions(command).map(optionRow),
    values: valuesOf(command, program),
  }))
}

function optionRow(option: Option): OptionRow {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    takesValue: option.required || option.optional,
    values: option.argChoices ?? [],
  }
}

function valuesOf(command: Command, program: Command): readonly string[] {
  if (command.name() === 'help') return program.commands.map((each) => each.name())
  return command.registeredArguments[0]?.argChoices ?? []
}
