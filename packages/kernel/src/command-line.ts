import { ThvError } from './errors.ts'

/** The part of commander's Command that is used here: programs depend on commander, this package does not. */
interface CommandLine {
  parseAsync(argv: readonly string[]): Promise<unknown>
  exitOverride(): this
  configureOutput(output: { writeOut(text: string): void; writeErr(text: string): void }): this
}

interface CommanderError extends Error {
  readonly code: string
  readonly exitCode: number
}

export interface UsageOptions {
  /** The message for a problem, such as `unknown option '--x'`: says where to read on. */
  message(problem: string): string
  /** A command that has commands below it, and was given none. */
  readonly onCommandMissing?: () => void
}

/** Errors come back as errors, so that there is one place that prints them. */
export function withoutExit<T extends CommandLine>(command: T, out: (text: string) => void): T {
  return command.exitOverride().configureOutput({ writeOut: out, writeErr: () => {} })
}

/** Runs the command that the words name. Words that it does not know are an error of code `usage`; help and version end well. */
export async function runCommandLine(program: CommandLine, argv: readonly string[], usage: UsageOptions): Promise<void> {
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (!isCommanderError(error)) throw error
    if (error.exitCode === 0) return
    if (error.code === 'commander.help' && usage.onCommandMissing !== undefined) return usage.onCommandMissing()
    throw new ThvError('usage', usage.message(error.message.replace(/^error: /, '').replace(/\.$/, '')))
  }
}

function isCommanderError(error: unknown): error is CommanderError {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('commander.') && 'exitCode' in error
}
