import { AsyncLocalStorage } from 'node:async_hooks'
import { resolve } from 'node:path'

type Env = Readonly<Record<string, string | undefined>>

/** The part of a process that each program has for itself where several share one (ADR 0028). */
export interface ProgramScope {
  readonly env: Env
  /** Its working folder. */
  readonly cwd: string
  /** Writes to its standard output. False: its reader is slow, and nothing was written. */
  writeOutput(text: string): boolean
  /**
   * Calls back when the program ends, at once if it has: what the end of a process would close, such as a listener, must not outlive it even
   * when its shutdown was cut short. Disposed when there is nothing left to close.
   */
  onEnd(close: () => void): Disposable
}

const scopes = new AsyncLocalStorage<ProgramScope>()

/** Everything that `work` starts, timers, sockets and promises included, belongs to the program. */
export function runInScope<T>(scope: ProgramScope, work: () => T): T {
  return scopes.run(scope, work)
}

/** The program that the running code belongs to; undefined in a process with one program. */
export function currentScope(): ProgramScope | undefined {
  return scopes.getStore()
}

/** The variables of the program: of its scope, else of the process. */
export function programEnv(): Env {
  return scopes.getStore()?.env ?? process.env
}

/** A relative path begins in the working folder of the program. */
export function programPath(path: string): string {
  const scope = scopes.getStore()
  return scope === undefined ? path : resolve(scope.cwd, path)
}
