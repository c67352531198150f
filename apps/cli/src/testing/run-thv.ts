import { isThvError } from '@thv/kernel/errors'
import { buildProgram, type ProgramEnv } from '../program.ts'

export interface ThvRun {
  readonly out: string
  readonly err: string
  /** Undefined when it succeeded. */
  readonly error: { readonly code: string; readonly message: string } | undefined
}

/** Runs a command inside this process, and keeps what it prints. */
export async function runThv(args: readonly string[], env: Partial<ProgramEnv> = {}): Promise<ThvRun> {
  let out = ''
  let err = ''
  const program = buildProgram({
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    cwd: '/nowhere',
    variables: { HOME: '/nowhere' },
    isTerminal: false,
    ...env,
  })
  try {
    await program.parseAsync(['node', 'thv', ...args])
    return { out, err, error: undefined }
  } catch (error) {
    if (!isThvError(error)) throw error
    return { out, err, error }
  }
}
