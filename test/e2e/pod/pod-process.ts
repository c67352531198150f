import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../../../apps/proxyrunner/bin/thv-proxyrunner.js', import.meta.url))
const AS_IN_POD = new URL('as-in-pod.ts', import.meta.url).href
const STOP_LIMIT_MS = 15_000

export interface PodProcessOptions {
  /** Of the API server. */
  readonly cluster: { readonly url: string; readonly caPem: string }
  readonly token: string
  readonly namespace: string
  readonly runConfig: object
  /** Names that mean this machine. */
  readonly hosts: readonly string[]
  /** Of the pod. */
  readonly name?: string
}

export interface PodProcess extends AsyncDisposable {
  readonly output: string
}

/** `thv-proxyrunner run`, without further arguments and with nothing but what a pod is given: environment and mounted files. */
export function startInPod({ cluster, token, namespace, runConfig, hosts, name }: PodProcessOptions): PodProcess {
  const root = mkdtempSync(join(tmpdir(), 'thv-pod-'))
  const account = 'var/run/secrets/kubernetes.io/serviceaccount'
  const files = {
    'etc/runconfig/runconfig.json': JSON.stringify(runConfig),
    [`${account}/token`]: token,
    [`${account}/ca.crt`]: cluster.caPem,
    [`${account}/namespace`]: namespace,
  }
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
  const { hostname, port } = new URL(cluster.url)
  const child = spawn(process.execPath, ['--import', AS_IN_POD, BIN, 'run'], {
    cwd: root,
    env: {
      ...{ PATH: process.env['PATH'], HOME: root, POD_ROOT: root, POD_HOSTS: hosts.join(',') },
      ...{ KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
      ...(name !== undefined && { POD_NAME: name }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk
    })
  }
  return {
    get output() {
      return output
    },
    async [Symbol.asyncDispose]() {
      const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      clearTimeout(limit)
      rmSync(root, { recursive: true, force: true })
    },
  }
}
