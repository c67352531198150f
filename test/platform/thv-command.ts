import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { binariesAvailability, findBinaries } from '@thv/testkit/cluster/programs/binaries'
import type { PlatformProcess } from './platform-process.ts'

const THV = fileURLToPath(new URL('../../apps/cli/bin/thv.js', import.meta.url))
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LIMIT_MS = 120_000
const run = promisify(execFile)

/** Output of `thv ARGS` about a platform. Rejects when it fails. */
export async function thv({ folder }: PlatformProcess, ...args: readonly string[]): Promise<string> {
  return (await run(process.execPath, [THV, ...args, '--data-dir', folder], { cwd: folder, timeout: LIMIT_MS })).stdout
}

/** Output of a command as a page shows it, run by a shell in a namespace of a platform. Rejects when it fails. */
export async function shown(platform: PlatformProcess, namespace: string, command: string): Promise<string> {
  const { folder, kubeconfigPath } = platform
  const inFolder = `--namespace ${namespace} --data-dir '${folder}'`
  const script = [
    `kubectl() { '${kubectlProgram()}' --kubeconfig '${kubeconfigPath}' --cache-dir '${folder}/kubectl-cache' --namespace ${namespace} "$@"; }`,
    `npx() { shift; '${process.execPath}' '${THV}' "$@" ${inFolder}; }`,
    // For pages that get something; some machines have no curl.
    `command -v curl > /dev/null || curl() { for url; do :; done; '${process.execPath}' -e 'fetch(process.argv[1]).then((a) => a.text()).then(console.log)' "$url"; }`,
    command,
  ].join('\n')
  return (await run('sh', ['-ec', script], { cwd: ROOT, timeout: LIMIT_MS })).stdout
}

/** Why there is no kubectl on this machine; undefined when there is one. It is built with the other programs of Kubernetes. */
export function kubectlMissing(): string | undefined {
  const { kind, reason } = binariesAvailability('api-server')
  return kind === 'ready' ? undefined : reason
}

/** Output of kubectl. Rejects when it fails. */
export async function kubectl({ kubeconfigPath, folder }: PlatformProcess, ...args: readonly string[]): Promise<string> {
  const program = kubectlProgram()
  const own = ['--kubeconfig', kubeconfigPath, '--cache-dir', `${folder}/kubectl-cache`]
  return (await run(program, [...own, ...args], { cwd: folder, timeout: LIMIT_MS })).stdout
}

function kubectlProgram(): string {
  const program = findBinaries('api-server')?.path('kubectl')
  if (program === undefined) throw new Error(`no kubectl: ${kubectlMissing()}`)
  return program
}
