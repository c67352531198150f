import { ThvError } from '@thv/kernel/errors'
import type { Command } from './child-process.ts'
import { findProgram } from './find-program.ts'
import type { Env } from './program-environment.ts'

export interface PythonPackage {
  readonly name: string
  /** Exact. */
  readonly version: string
}

/** How a program of PyPI is run. uv keeps packages and locks by itself. Throws `program_missing` with the line that installs uv. */
export async function pythonCommand({ name, version }: PythonPackage, args: readonly string[], env: Env): Promise<Command> {
  const uvx = await findProgram(['uvx'], env['PATH'])
  if (uvx !== undefined) return { file: uvx, args: [`${name}@${version}`, ...args] }
  const uv = await findProgram(['uv'], env['PATH'])
  if (uv !== undefined) return { file: uv, args: ['tool', 'run', `${name}@${version}`, ...args] }
  throw new ThvError('program_missing', `image: ${name}@${version} is run by uv, which is not on PATH; install it with: pip install uv`)
}
