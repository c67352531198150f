import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeImageArchive } from '../../image/image-archive.ts'
import { type ApiServer, type ApiServerOptions, type CompanionParts, startForm } from '../api-server.ts'
import { startControllers } from '../control-plane.ts'
import { apiRequest, request } from '../http-request.ts'
import { type Certificate, createCertificate } from '../identity/certificate.ts'
import { writeKubeconfig } from '../identity/credentials.ts'
import type { Daemon } from '../process/daemon.ts'
import { guardedFolderPrefix, startGuard } from '../process/process-guard.ts'
import { type Binaries, ensureBinaries } from '../programs/binaries.ts'
import { describeOwner, takeBuildLock } from '../programs/build-lock.ts'
import { containerdConfig, corednsConfig, kubeletConfig, kubeProxyConfig, networkConfig, pauseImage, runtimeSocket } from './node-config.ts'
import { importImage } from './node-images.ts'
import { ensureNodePackages, nodeProblem } from './node-packages.ts'
import { makeNodePlace, type NodePlace, nodeName, nodeNetwork, runInNode } from './node-place.ts'

/**
 * A real cluster of one node that runs pods: the control plane on the host, the node in namespaces of its own. From the host pods and
 * the addresses of Services can be reached; pods reach the host at `hostAddress` and nothing beyond.
 */
export interface NodeCluster extends ApiServer {
  readonly nodeName: string
  readonly hostAddress: string
  /** The node's first process; `importImage` of node-images needs it in another process than this. */
  readonly initPid: number
  /** Loads an archive of `writeImageArchive` or `docker save`. */
  importImage(archive: string): Promise<void>
  /** The last lines of each program, for a failed test. */
  logs(lines?: number): string
}

/** One at a time on a machine: another run that has one is waited for. Needs root. */
export async function startNode(options: ApiServerOptions = {}): Promise<NodeCluster> {
  const log = options.log ?? ((line: string) => console.error(line))
  const problem = nodeProblem()
  if (problem) throw new Error(problem)
  await ensureNodePackages(log)
  const binaries = await ensureBinaries({ set: 'node', log })
  const lock = await takeBuildLock('/run/thv-testkit-node.lock', {
    waitLimitMs: 20 * 60_000,
    onWait: (owner) => log(`${describeOwner(owner)} runs a node, waiting for its end`),
  })
  const guard = startGuard()
  try {
    const folder = await mkdtemp(join(tmpdir(), `${guardedFolderPrefix}node-`))
    guard.removeAtEnd(folder)
    const place = await makeNodePlace({ guard, folder, binaries })
    let daemons: readonly Daemon[] = []
    const cluster = await startForm(
      {
        programs: 'node',
        address: nodeNetwork.host,
        services: nodeNetwork.services,
        flags: async ({ ca }) => {
          const client = createCertificate({ commonName: 'kube-apiserver', organizations: ['system:masters'], issuer: ca })
          const files = await writeCertificate(folder, 'kubelet-client', client)
          return [
            `--kubelet-preferred-address-types=InternalIP`,
            `--kubelet-client-certificate=${files.cert}`,
            `--kubelet-client-key=${files.key}`,
          ]
        },
        startCompanions: async (parts) => {
          daemons = await startNodeParts(parts, place)
          return daemons
        },
      },
      options,
    )
    const end = async () => {
      await cluster.stop()
      await guard.close()
      await lock.release()
    }
    let stopping: Promise<void> | undefined
    const stop = () => {
      stopping ??= end()
      return stopping
    }
    return {
      ...cluster,
      get pids() {
        return [...cluster.pids, place.holder.pid, guard.pid]
      },
      nodeName,
      hostAddress: nodeNetwork.host,
      initPid: place.initPid,
      importImage: (archive) => importImage(place.initPid, archive),
      logs: (lines = 40) => daemons.map((daemon) => `── ${daemon.name}\n${daemon.logTail(lines)}`).join('\n'),
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await guard.close()
    await lock.release()
    throw error
  }
}

async function startNodeParts(parts: CompanionParts, place: NodePlace): Promise<readonly Daemon[]> {
  const [programs, controllers] = await Promise.all([startPrograms(parts, place), startControllers(parts, ['--node-monitor-period=1s'])])
  const daemons = [...programs, ...controllers]
  const wait = (what: string, ready: () => Promise<boolean>) => waitFor(what, { limitMs: parts.limitMs, daemons, ready })
  await wait('the node', () => nodeIsReady(parts))
  await wait('CoreDNS', () => answers(`http://${nodeNetwork.node}:8181/ready`))
  await wait('kube-proxy', () => answers(`http://${nodeNetwork.node}:10256/healthz`))
  return daemons
}

async function startPrograms(parts: CompanionParts, place: NodePlace): Promise<readonly Daemon[]> {
  const containerd = await startContainerd(parts, place)
  await importPauseImage(place, parts.binaries)
  return [...(await Promise.all([startKubelet(parts, place), startKubeProxy(parts, place), startCoredns(parts, place)])), containerd]
}

async function startContainerd(parts: CompanionParts, place: NodePlace): Promise<Daemon> {
  const networks = join(place.folder, 'networks')
  await mkdir(networks)
  await writeFile(join(networks, '10-pods.conflist'), JSON.stringify(networkConfig()))
  const config = join(place.folder, 'containerd.toml')
  await writeFile(config, containerdConfig({ plugins: place.plugins, networks }))
  const daemon = await startInside(parts, place, { name: 'containerd', args: ['--config', config] })
  const ready = () => runInNode(place.initPid, ['ctr', '--address', runtimeSocket, 'version'], { limitMs: 5000 }).then(() => true)
  await waitFor('containerd', { limitMs: parts.limitMs, daemons: [daemon], ready })
  return daemon
}

async function startKubelet(parts: CompanionParts, place: NodePlace): Promise<Daemon> {
  const { ca, files } = parts.credentials
  const { folder } = place
  const serving = createCertificate({ commonName: nodeName, hosts: [nodeNetwork.node, nodeName], issuer: ca })
  const { cert, key } = await writeCertificate(folder, 'kubelet', serving)
  const resolvConf = join(folder, 'resolv.conf')
  await writeFile(resolvConf, '# the names of the cluster only\n')
  const config = await writeJson(folder, 'kubelet.json', kubeletConfig({ ca: files.ca, cert, key, resolvConf }))
  const kubeconfig = await userKubeconfig(parts, folder, { user: `system:node:${nodeName}`, groups: ['system:nodes'] })
  const args = [`--config=${config}`, `--kubeconfig=${kubeconfig}`, `--hostname-override=${nodeName}`, `--node-ip=${nodeNetwork.node}`]
  return startInside(parts, place, { name: 'kubelet', command: join(place.programs, 'kubelet'), args })
}

async function startKubeProxy(parts: CompanionParts, place: NodePlace): Promise<Daemon> {
  const kubeconfig = await userKubeconfig(parts, place.folder, { user: 'system:kube-proxy' })
  const config = await writeJson(place.folder, 'kube-proxy.json', kubeProxyConfig(kubeconfig))
  return startInside(parts, place, { name: 'kube-proxy', command: join(place.programs, 'kube-proxy'), args: [`--config=${config}`] })
}

async function startCoredns(parts: CompanionParts, place: NodePlace): Promise<Daemon> {
  const config = join(place.folder, 'Corefile')
  await writeFile(config, corednsConfig(parts.access.kubeconfigPath))
  return startInside(parts, place, { name: 'coredns', command: join(place.programs, 'coredns'), args: ['-conf', config] })
}

function startInside(
  parts: CompanionParts,
  place: NodePlace,
  program: { name: string; command?: string; args: readonly string[] },
): Promise<Daemon> {
  const { name, command = name, args } = program
  return place.start(name, { command, args, logFile: join(place.folder, `${name}.log`), guard: parts.guard })
}

async function importPauseImage(place: NodePlace, binaries: Binaries): Promise<void> {
  const archive = join(place.folder, 'pause.tar')
  await writeImageArchive(archive, {
    tags: [pauseImage],
    files: [{ path: 'pause', mode: 0o755, content: { kind: 'file', source: binaries.path('pause') } }],
    config: { User: '65535:65535', Entrypoint: ['/pause'] },
  })
  await importImage(place.initPid, archive)
}

async function nodeIsReady(parts: CompanionParts): Promise<boolean> {
  const answer = await apiRequest(parts.access, `/api/v1/nodes/${nodeName}`)
  if (answer.status !== 200) return false
  const { spec, status } = answer.json<{
    spec?: { taints?: object[] }
    status?: { conditions?: { type: string; status: string }[] }
  }>()
  const ready = status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false
  return ready && (spec?.taints ?? []).length === 0
}

async function answers(url: string): Promise<boolean> {
  return (await request(url, { limitMs: 2000 })).status === 200
}

interface Wait {
  readonly limitMs: number
  readonly daemons: readonly Daemon[]
  /** Throws while unreachable. */
  ready(): Promise<boolean>
}

async function waitFor(what: string, { limitMs, daemons, ready }: Wait): Promise<void> {
  const deadline = performance.now() + limitMs
  let last = 'it is not ready'
  for (;;) {
    const ended = daemons.find((daemon) => !daemon.running)
    if (ended) throw new Error(`${await ended.ended}; its last lines:\n${ended.logTail()}`)
    try {
      if (await ready()) return
    } catch (error) {
      last = (error as Error).message
    }
    if (performance.now() > deadline) {
      const logs = daemons.map((daemon) => `── ${daemon.name}\n${daemon.logTail(15)}`).join('\n')
      throw new Error(`${what} was not ready within ${limitMs} ms (${last})\n${logs}`)
    }
    await sleep(100)
  }
}

async function userKubeconfig(parts: CompanionParts, folder: string, who: { user: string; groups?: readonly string[] }): Promise<string> {
  const path = join(folder, `${who.user.split(':')[1]}.kubeconfig`)
  const certificate = createCertificate({ commonName: who.user, organizations: who.groups ?? [], issuer: parts.credentials.ca })
  await writeKubeconfig(path, { url: parts.access.url, caPem: parts.access.caPem, certificate })
  return path
}

async function writeCertificate(folder: string, name: string, certificate: Certificate): Promise<{ cert: string; key: string }> {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
  await writeFile(cert, certificate.certPem)
  await writeFile(key, certificate.keyPem, { mode: 0o600 })
  return { cert, key }
}

async function writeJson(folder: string, name: string, content: object): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, JSON.stringify(content))
  return path
}
