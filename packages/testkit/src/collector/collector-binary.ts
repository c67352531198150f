import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { goProblem } from '../cluster/programs/go-build.ts'
import { type GoBuildOptions, runGo } from '../cluster/programs/run-go.ts'
import { cachedProgramPath, ensureCachedProgram, isExecutable } from '../go-programs/cached-program.ts'

/** Later ones need `collector/internal/statusutil`, which the module proxy does not serve. Raise it with module/go.mod. */
export const collectorVersion = 'v0.115.0'

/** Why there is no collector here, and cannot be; undefined when there is one, or Go can build it. */
export function collectorProblem(env: NodeJS.ProcessEnv = process.env): string | undefined {
  return isExecutable(cachedCollector(env)) ? undefined : goProblem()
}

/** The path of the collector, which is built once per machine from `module`; another run that builds it meanwhile is waited for. */
export async function ensureCollector(options: Partial<GoBuildOptions> = {}): Promise<string> {
  const path = cachedCollector(process.env)
  if (isExecutable(path)) return path
  const problem = goProblem()
  if (problem) throw new Error(`no OpenTelemetry collector: ${problem}; install Go to build it`)
  return await ensureCachedProgram({
    path,
    announcement: `${collectorVersion} goes to ${path}; once per machine, about a minute of two cores`,
    build: buildCollector,
    log: (line) => options.log?.(`collector: ${line}`),
    signal: options.signal,
  })
}

function cachedCollector(env: NodeJS.ProcessEnv): string {
  return cachedProgramPath('otelcol', collectorVersion, env)
}

async function buildCollector(workFolder: string, options: GoBuildOptions): Promise<string> {
  const cwd = join(workFolder, 'module')
  await cp(fileURLToPath(new URL('./module', import.meta.url)), cwd, { recursive: true })
  const output = join(workFolder, 'otelcol')
  const args = ['build', '-gcflags=all=-dwarf=false', '-ldflags', '-s -w', '-o', output, '.']
  await runGo(args, { ...options, title: 'building otelcol', isNice: true, workFolder, cwd })
  return output
}
