import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { binariesAvailability, findBinaries } from '@thv/testkit/cluster/programs/binaries'
import type { PlatformProcess } from './platform-process.ts'

const THV = fileURLToPath(new URL('../../apps/cli/bin/thv.js', import.meta.url))
const LIMIT_MS = 60_000
const run = promisify(execFile)

/** Output of `thv ARGS` about a platform. Rejects when it fails. */
export async function thv({ folder }: PlatformProcess, ...args: readonly string[]): Promise<string> {
  return (await run(process.execPath, [THV, ...args, '--data-dir', folder], { cwd: folder, timeout: LIMIT_MS })).stdout
}

/** Why there is no kubectl on this machine; undefined when there is one. It is built with the other programs of Kubernetes. */
export function kubectlMissing(): string | undefined {
  const { kind, reason } = binariesAvailability('api-server')
  return kind === 'ready' ? undefined : reason
}

/** Output of kubectl. Rejects when it fails. */
export async function kubectl({ kubeconfigPath, folder }: PlatformProcess, ...args: readonly string[]): Promise<string> {
  const program = findBinaries('api-server')?.path('kubectl')
  if (program === undefined) throw new Error(`no kubectl: ${kubectlMissing()}`)
  const own = ['--kubeconfig', kubeconfigPath, '--cache-dir', `${folder}/kubectl-cache`]
  return (await run(program, [...own, ...args], { cwd: folder, timeout: LIMIT_MS })).stdout
}
