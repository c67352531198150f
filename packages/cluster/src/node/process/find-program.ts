import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** The file to run, or why there is none, in the words of a container runtime. */
export function findProgram(name: string, place: { readonly path: string; readonly cwd: string }): { file: string } | { problem: string } {
  if (name === '') return { problem: 'exec: no command' }
  if (name.includes('/')) {
    const file = isAbsolute(name) ? name : join(place.cwd, name)
    const problem = problemOf(file)
    return problem === undefined ? { file } : { problem: `exec: ${JSON.stringify(name)}: ${problem}` }
  }
  for (const folder of place.path.split(delimiter)) {
    const file = join(folder, name)
    if (isAbsolute(folder) && problemOf(file) === undefined) return { file }
  }
  return { problem: `exec: ${JSON.stringify(name)}: executable file not found in $PATH` }
}

function problemOf(file: string): string | undefined {
  try {
    if (!statSync(file).isFile()) return 'is not a file'
    accessSync(file, constants.X_OK)
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EACCES'
      ? 'permission denied'
      : `stat ${file}: no such file or directory`
  }
}
