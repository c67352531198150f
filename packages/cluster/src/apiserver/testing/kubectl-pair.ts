import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { apiRequest, request } from '@thv/testkit/cluster/http-request'
import { writeKubeconfig } from '@thv/testkit/cluster/identity/credentials'
import { sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { type EmbeddedApiServer, startApiServer } from '../api-server.ts'

export interface Outcome {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The real API server and ours side by side, with a namespace of the same name. */
export interface KubectlPair extends AsyncDisposable {
  readonly namespace: string
  readonly errors: readonly unknown[]
  /** The command on both; what differs from run to run is left out of what they print. */
  run(command: string, input?: object): Promise<{ readonly ours: Outcome; readonly theirs: Outcome }>
}

const OUR_RANGE = /127\.96\.\d+\.\d+/g

export async function startKubectlPair(prefix: string): Promise<KubectlPair> {
  const folder = mkdtempSync(join(tmpdir(), 'thv-kubectl-'))
  const errors: unknown[] = []
  const server = await startApiServer({ onError: (error) => errors.push(error) })
  const ours = join(folder, 'kubeconfig')
  await writeKubeconfig(ours, { url: server.url, caPem: server.caPem, token: server.adminToken })
  const namespace = await testNamespace(prefix)
  await createOn(server, '/api/v1/namespaces', { metadata: { name: namespace } })
  const theirRange = await realRange()
  const run = (kubeconfig: string, cache: string, { command, input }: { command: string; input: object | undefined }) =>
    kubectl(['--kubeconfig', kubeconfig, '--cache-dir', join(folder, cache), '-n', namespace, ...command.split(' ')], input)
  return {
    namespace,
    errors,
    async run(command, input) {
      const theirs = await run(sharedCluster().kubeconfigPath, 'real', { command, input })
      const own = await run(ours, 'ours', { command, input })
      return { theirs: comparable(theirs, theirRange), ours: comparable(own, OUR_RANGE) }
    },
    async [Symbol.asyncDispose]() {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function createOn({ url, caPem, adminToken }: EmbeddedApiServer, path: string, body: object): Promise<void> {
  await request(`${url}${path}`, { method: 'POST', body, caPem, headers: { authorization: `Bearer ${adminToken}` } })
}

async function realRange(): Promise<RegExp> {
  const answer = await apiRequest(sharedCluster(), '/apis/networking.k8s.io/v1/servicecidrs/kubernetes')
  const [first = '', bits = ''] = (answer.json<{ spec: { cidrs: string[] } }>().spec.cidrs[0] ?? '').split('/')
  const kept = first.split('.').slice(0, Math.floor(Number(bits) / 8))
  return new RegExp(`${kept.join('\\.')}(?:\\.\\d+){${4 - kept.length}}`, 'g')
}

function kubectl(args: readonly string[], input: object | undefined): Promise<Outcome> {
  const child = spawn(sharedCluster().kubectlPath, args, { timeout: 60_000 })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text.stderr += chunk
  })
  child.stdin.end(input === undefined ? '' : JSON.stringify(input))
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (status) => resolve({ status, ...text }))
  })
}

/** Ages, addresses and node ports differ, and with them the width of columns. */
function comparable({ status, stdout, stderr }: Outcome, range: RegExp): Outcome {
  const plain = (text: string) =>
    text
      .replaceAll(/https:\/\/127\.0\.0\.1:\d+/g, '<server>')
      .replaceAll(range, '<service address>')
      .replaceAll(/\b3[0-2]\d{3}\b/g, '<node port>')
      .replaceAll(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z| \+0000 UTC)/g, '<time>')
      .replaceAll(/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000/g, '<time>')
      .replaceAll(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/g, '<uid>')
      .replaceAll(/\b\d+(ms|s)\b/g, '<age>')
      .replaceAll(/[ \t]+/g, ' ')
  return { status, stdout: plain(stdout), stderr: plain(stderr) }
}
