import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { Problem } from '@thv/runconfig/field'

const MAX_FILES = 256
const MAX_BYTES = 1 << 20

export interface EnvFiles {
  readonly vars: Readonly<Record<string, string>>
  readonly problems: readonly Problem[]
}

/**
 * Variables from all files of a folder, as secret injectors write them. Files are read in the order of their names, the last one wins.
 * Hidden entries are passed over: a mounted volume keeps its versions in them. Problems name file and line, never what stands there.
 */
export async function readEnvFiles(folder: string): Promise<EnvFiles> {
  const problems: Problem[] = []
  const vars = new Map<string, string>()
  const at = (message: string) => problems.push({ path: 'env_file_dir', message })
  let names: string[]
  try {
    names = (await readdir(mountedPath(folder))).filter((name) => !name.startsWith('.')).sort()
  } catch (error) {
    at(`the folder ${folder} cannot be read (${codeOf(error)})`)
    return { vars: {}, problems }
  }
  if (names.length > MAX_FILES) at(`the folder ${folder} holds more than ${MAX_FILES} files`)
  for (const name of names.slice(0, MAX_FILES)) {
    const file = join(mountedPath(folder), name)
    try {
      const { size, isFile } = await stat(file).then((info) => ({ size: info.size, isFile: info.isFile() }))
      if (!isFile) continue
      if (size > MAX_BYTES) at(`${file} is larger than ${MAX_BYTES} bytes`)
      else parseEnvFile(await readFile(file, 'utf8'), { vars, at: (line, message) => at(`${file} line ${line} ${message}`) })
    } catch (error) {
      at(`${file} cannot be read (${codeOf(error)})`)
    }
  }
  return { vars: Object.fromEntries(vars), problems }
}

/** `KEY=VALUE` per line; `export` before it and quotes around the value are taken off, empty lines and comments skipped. */
function parseEnvFile(text: string, into: { vars: Map<string, string>; at: (line: number, message: string) => void }): void {
  text.split(/\r?\n/).forEach((raw, index) => {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) return
    const match = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)$/.exec(line)
    if (match === null) into.at(index + 1, 'expects KEY=VALUE')
    else into.vars.set(match[1] ?? '', unquoted(match[2] ?? ''))
  })
}

function unquoted(value: string): string {
  const quote = value[0]
  return value.length >= 2 && (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'
}
