import { mkdir, rename, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { NODE_BIND_GUARD } from './node-bind-guard.ts'
import { PYTHON_BIND_GUARD } from './python-bind-guard.ts'

/** The variables through which a program comes under the guard; the address alone changes from pod to pod. */
export interface BindGuard {
  envFor(address: string): Readonly<Record<string, string>>
}

/** Written again at each start, so that nothing depends on where this program's own files are, and no old version stays. */
export async function installBindGuard(folder: string): Promise<BindGuard> {
  const python = join(folder, 'python')
  await mkdir(python, { recursive: true, mode: 0o700 })
  const preload = join(folder, 'bind-guard.cjs')
  await replaceFile(preload, NODE_BIND_GUARD)
  await replaceFile(join(python, 'sitecustomize.py'), PYTHON_BIND_GUARD)
  return {
    envFor: (address) => ({
      THV_BIND_ADDRESS: address,
      NODE_OPTIONS: `--require ${quoted(preload)}`,
      // A path list has no quotes: below such a folder Python programs go without the guard, and are found out by their sockets.
      ...(python.includes(delimiter) ? {} : { PYTHONPATH: python }),
    }),
  }
}

/** A container's own values stand behind the guard, for these two; all its other variables win. */
export function withBindGuard(own: Readonly<Record<string, string>>, guard: Readonly<Record<string, string>>): Record<string, string> {
  const merged: Record<string, string> = { ...guard, ...own }
  if (guard['THV_BIND_ADDRESS'] !== undefined) merged['THV_BIND_ADDRESS'] = guard['THV_BIND_ADDRESS']
  if (guard['NODE_OPTIONS'] && own['NODE_OPTIONS']) merged['NODE_OPTIONS'] = `${guard['NODE_OPTIONS']} ${own['NODE_OPTIONS']}`
  if (guard['PYTHONPATH'] && own['PYTHONPATH']) merged['PYTHONPATH'] = `${guard['PYTHONPATH']}${delimiter}${own['PYTHONPATH']}`
  return merged
}

/** As NODE_OPTIONS is read: in double quotes, where a backslash takes the next character as it is. */
function quoted(path: string): string {
  return `"${path.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
