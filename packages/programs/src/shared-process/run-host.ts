import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { currentScope, runInScope } from '@thv/kernel/program-scope'
import { HostedProgram } from './hosted-program.ts'
import { readToHost, type ToHost } from './messages.ts'

export interface HostOptions {
  /** The main function of each program; its end is reported through `program.exit`. */
  readonly main: (program: HostedProgram) => Promise<void>
  readonly input: Readable
  /** Takes a line with its line feed. */
  readonly write: (line: string) => void
}

/** Runs programs in this process as the platform asks for them, until it closes the input. */
export async function runHost({ main, input, write }: HostOptions): Promise<void> {
  const programs = new Map<number, HostedProgram>()
  process.on('uncaughtException', onUncaught)

  function handle(message: ToHost): void {
    if ('start' in message) start(message)
    else if ('signal' in message) signal(message)
    else if ('hold' in message) programs.get(message.hold)?.hold()
    else programs.get(message.resume)?.resume()
  }

  function start(message: Extract<ToHost, { start: number }>): void {
    const program = new HostedProgram({ start: message, write, onExit: () => programs.delete(message.start) })
    programs.set(message.start, program)
    runInScope(program, () => void main(program).catch((error: unknown) => fail(program, error)))
  }

  /** In its scope: what ends it is its work too. */
  function signal({ signal: id, name }: Extract<ToHost, { signal: number }>): void {
    const program = programs.get(id)
    if (program !== undefined) runInScope(program, () => program.signal(name))
  }

  for await (const line of createInterface({ input })) {
    const message = readToHost(line)
    if (message !== undefined) handle(message)
  }
  process.off('uncaughtException', onUncaught)
}

/** Watchers of uncaught errors see it first: bundles name the lines of the sources in its trace. */
function fail(program: HostedProgram, error: unknown): void {
  process.emit('uncaughtExceptionMonitor', error as Error, 'unhandledRejection')
  program.crash(error)
}

/**
 * Fails the program that the error belongs to; the others go on. What belongs to none ends the process, as it would without a handler:
 * its state is unknown.
 */
function onUncaught(error: unknown): void {
  const failed = currentScope()
  if (failed instanceof HostedProgram && !failed.hasEnded) failed.crash(error)
  else {
    console.error(error)
    if (failed === undefined) process.exit(1)
  }
}
