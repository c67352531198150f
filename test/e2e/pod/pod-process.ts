import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PROXY_RUNNER = fileURLToPath(new URL('../../../apps/proxyrunner/bin/thv-proxyrunner.js', import.meta.url))
const AS_IN_POD = new URL('as-in-pod.ts', import.meta.url).href
const STOP_LIMIT_MS = 60_000

export interface PodOptions {
  /** Of the API server. */
  readonly cluster: { readonly url: string; readonly caPem: string }
  readonly token: string
  readonly namespace: string
  /** Names that mean this machine. */
  readonly hosts: readonly string[]
  /** Of the pod. */
  readonly name?: string
}

export interface PodProcessOptions extends PodOptions {
  readonly runConfig: object
}

export interface PodProcess extends AsyncDisposable {
  readonly output: string
  /** The folder with the mounted files. */
  readonly root: string
}

/** `thv-proxyrunner run`, without further arguments and with nothing but what a pod is given: environment and mounted files. */
export function startInPod({ runConfig, ...pod }: PodProcessOptions): PodProcess {
  const files = { 'etc/runconfig/runconfig.json': JSON.stringify(runConfig) }
  return startProgramInPod({ ...pod, program: PROXY_RUNNER, args: () => ['run'], files: () => files })
}

export interface PodProgramOptions extends PodOptions {
  readonly program: string
  /** Both receive the folder with the mounted files. */
  readonly args: (root: string) => readonly string[]
  readonly files: (root: string) => Readonly<Record<string, string>>
}

/** A program with the account, the environment and the files of its pod. */
export function startProgramInPod({ cluster, token, namespace, hosts, name, program, args, files }: PodProgramOptions): PodProcess {
  const root = mkdtempSync(join(tmpdir(), 'thv-pod-'))
  const account = 'var/run/secrets/kubernetes.io/serviceaccount'
  const mounted = {
    ...files(root),
    [`${account}/token`]: token,
    [`${account}/ca.crt`]: cluster.caPem,
    [`${account}/namespace`]: namespace,
  }
  for (const [file, content] of Object.entries(mounted)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), content)
  }
  const { hostname, port } = new URL(cluster.url)
  const child = spawn(process.execPath, ['--import', AS_IN_POD, program, ...args(root)], {
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
    root,
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
