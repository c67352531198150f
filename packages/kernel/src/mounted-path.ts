import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { programEnv, programPath } from './program-scope.ts'

type Env = Readonly<Record<string, string | undefined>>

/**
 * Where a file that a volume brings really is. A node without containers cannot put volumes where the pod wants them: it lays them out
 * below a folder that it names in THV_ROOT. Everywhere else the path is as it is written.
 */
export function mountedPath(path: string, env: Env = programEnv()): string {
  const root = env['THV_ROOT']
  if (!root || !isAbsolute(path)) return programPath(path)
  const mounted = join(root, path)
  return existsSync(mounted) ? mounted : path
}

/** The folder below which a pod sees its volumes. */
export function mountRoot(env: Env = programEnv()): string {
  return env['THV_ROOT'] || '/'
}
