import { createPrivateKey } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createTokenKey } from '@thv/cluster/apiserver/accounts/token-key'
import { readIdentity } from '@thv/cluster/apiserver/identity/identity-file'
import type { ClusterAccess } from '../cluster/cluster-access.ts'
import { waitForDefaultAccount } from '../cluster/default-account.ts'
import { request } from '../cluster/http-request.ts'
import { writeKubeconfig } from '../cluster/identity/credentials.ts'
import { tokenClaims } from '../cluster/identity/service-account-token.ts'
import { startDaemon } from '../cluster/process/daemon.ts'
import { guardedFolderPrefix, type ProcessGuard, startGuard } from '../cluster/process/process-guard.ts'
import { startOnPort } from '../cluster/process/start-on-port.ts'
import { findBinaries } from '../cluster/programs/binaries.ts'
import { createServerHandle, type RunningServer, type TestServer } from '../cluster/server-handle.ts'

export interface EmbeddedServerOptions {
  /** With our controllers beside it (form `control-plane`). Default false: the API server alone. */
  readonly controllers?: boolean
  readonly startLimitMs?: number
}

interface Place {
  /** The folder of the harness; the server's own data are below it. */
  readonly folder: string
  readonly data: string
  readonly readyFile: string
  readonly guard: ProcessGuard
}

const main = fileURLToPath(new URL('./embedded-main.ts', import.meta.url))
const compactLimitMs = 60_000

/** Our own API server as a process of its own, to be handled like a real one. */
export async function startEmbeddedServer(options: EmbeddedServerOptions = {}): Promise<TestServer> {
  const { controllers = false, startLimitMs = 90_000 } = options
  const folder = await mkdtemp(join(tmpdir(), `${guardedFolderPrefix}embedded-`))
  const guard = startGuard()
  try {
    guard.removeAtEnd(folder)
    const place = { folder, data: join(folder, 'data'), readyFile: join(folder, 'ready.json'), guard }
    await mkdir(place.data)
    let running: RunningServer | undefined
    let mustCompact = false
    const compactNow = async () => {
      mustCompact = running?.daemon.running !== true
      if (!mustCompact && running) await compact(place, running.daemon.pid)
    }
    const start = async (port?: number) => {
      running = await startProcess(place, { port, controllers, limitMs: startLimitMs })
      if (mustCompact) await compactNow()
      return running
    }
    const first = await start()
    const access = await describeAccess(place, controllers)
    if (controllers) await waitForDefaultAccount('default', access, startLimitMs)
    return createServerHandle({
      access,
      folder,
      guard,
      first,
      start,
      companions: [],
      foundation: [],
      // A real one's history can be forgotten while it does not run; ours then does it as soon as it does.
      compact: compactNow,
      mintToken: tokenMinter(place),
      clientCertificate: () => {
        throw new Error('the embedded API server does not know client certificates: the test needs `client-certificates`')
      },
    })
  } catch (error) {
    // The guard kills what it watches and removes the folder.
    await guard.close()
    throw error
  }
}

interface StartOptions {
  readonly port: number | undefined
  readonly controllers: boolean
  readonly limitMs: number
}

async function startProcess(
  { folder, data, readyFile, guard }: Place,
  { port, controllers, limitMs }: StartOptions,
): Promise<RunningServer> {
  const flags = controllers ? [] : ['--no-controllers']
  return await startOnPort({
    port,
    limitMs,
    start: async (free) => {
      await rm(readyFile, { force: true })
      const args = [main, data, String(free), readyFile, ...flags]
      return await startDaemon('embedded-apiserver', { command: process.execPath, args, logFile: join(folder, 'embedded.log'), guard })
    },
    // Only our own process writes this file.
    ready: async () => existsSync(readyFile) && readReady(readyFile).url !== '',
  })
}

interface Ready {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
}

function readReady(file: string): Ready {
  return JSON.parse(readFileSync(file, 'utf8')) as Ready
}

async function describeAccess({ folder, readyFile }: Place, controllers: boolean): Promise<ClusterAccess> {
  const { url, caPem, adminToken } = readReady(readyFile)
  const kubeconfigPath = join(folder, 'kubeconfig')
  await writeKubeconfig(kubeconfigPath, { url, caPem, token: adminToken })
  const version = (await request(`${url}/version`, { caPem })).json<{ gitVersion: string }>().gitVersion
  const kubectlPath = findBinaries('api-server')?.path('kubectl') ?? 'kubectl'
  const form = controllers ? 'control-plane' : 'api-server'
  return { plane: 'embedded', form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version }
}

function tokenMinter({ data }: Place): TestServer['mintToken'] {
  const identity = readIdentity(join(data, 'identity.json'))
  if (identity === undefined) throw new Error(`no identity in ${data}`)
  const key = createTokenKey(createPrivateKey(identity.serviceAccountKeyPem))
  return (options) => key.sign(tokenClaims(options))
}

/** The process counts its compactions in a file: a signal alone does not say when it was obeyed. */
async function compact({ readyFile }: Place, pid: number): Promise<void> {
  const counter = `${readyFile}.compactions`
  const done = () => (existsSync(counter) ? readFileSync(counter, 'utf8') : '')
  const before = done()
  process.kill(pid, 'SIGUSR2')
  const deadline = performance.now() + compactLimitMs
  while (done() === before) {
    if (performance.now() > deadline) throw new Error(`no compaction within ${compactLimitMs} ms`)
    await sleep(5)
  }
}
