import { versions } from './kubernetes-version.ts'

/** The programs of a cluster, by the name of their file. */
export type ProgramName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kubectl'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'coredns'
  | 'pause'
  | 'kubernetes-conformance'

/** The three forms of the harness, each with what the one before it has, and what runs Kubernetes' own tests. */
export type ProgramSet = 'api-server' | 'control-plane' | 'node' | 'conformance'

const apiServer: readonly ProgramName[] = ['etcd', 'kube-apiserver', 'kubectl']
const controlPlane: readonly ProgramName[] = [...apiServer, 'kube-controller-manager', 'kube-scheduler']
const node: readonly ProgramName[] = [...controlPlane, 'kubelet', 'kube-proxy', 'coredns', 'pause']

export const programSets: Readonly<Record<ProgramSet, readonly ProgramName[]>> = {
  'api-server': apiServer,
  'control-plane': controlPlane,
  node,
  conformance: ['kubectl', 'kubernetes-conformance'],
}

export function isProgramSet(name: string): name is ProgramSet {
  return Object.hasOwn(programSets, name)
}

/** A Go module from which programs are built. */
export interface GoModule {
  readonly name: string
  /** The module whose go.mod and go.sum pin the dependencies; nothing for a program that has none. */
  readonly from?: string
  readonly goMod: (source: string) => string
  /** A folder beside this file with the main package; without it the package is that of a dependency. */
  readonly sources?: string
  readonly programs: Readonly<Partial<Record<ProgramName, string>>>
  /** Those of the programs whose package is one of tests. */
  readonly tests?: readonly ProgramName[]
  readonly stamps?: readonly string[]
}

const command = (name: string) => `k8s.io/kubernetes/cmd/${name}`

export const goModules: readonly GoModule[] = [
  {
    name: 'kubernetes',
    from: `k8s.io/kubernetes@${versions.kubernetes}`,
    goMod: kubernetesModule,
    programs: {
      etcd: 'go.etcd.io/etcd/server/v3',
      'kube-apiserver': command('kube-apiserver'),
      kubectl: command('kubectl'),
      'kube-controller-manager': command('kube-controller-manager'),
      'kube-scheduler': command('kube-scheduler'),
      kubelet: command('kubelet'),
      'kube-proxy': command('kube-proxy'),
      'kubernetes-conformance': '.',
    },
    sources: 'go/conformance',
    tests: ['kubernetes-conformance'],
    // Without them the programs call themselves v0.0.0-master.
    stamps: [`gitVersion=${versions.kubernetes}`, `gitMajor=${versions.major}`, `gitMinor=${versions.minor}`].map(
      (value) => `k8s.io/component-base/version.${value}`,
    ),
  },
  {
    name: 'coredns',
    from: `github.com/coredns/coredns@${versions.coredns}`,
    goMod: (source) => `${renamed(source, 'kube.coredns')}require github.com/coredns/coredns ${versions.coredns}\n`,
    sources: 'go/coredns',
    programs: { coredns: '.' },
  },
  {
    name: 'pause',
    goMod: () => `module kube.pause\n\ngo ${versions.go.major}.${versions.go.minor}\n`,
    sources: 'go/pause',
    programs: { pause: '.' },
  },
]

/**
 * Kubernetes refers to its own libraries by folders inside its repository, which a module download does not contain; the same
 * libraries are published as modules of their own. A main module of ours with that one change can build its commands.
 */
export function kubernetesModule(source: string): string {
  const published = source.replace(/=> \.\/staging\/src\/(k8s\.io\/\S+)/g, (_, path: string) => `=> ${path} ${versions.staging}`)
  return `${renamed(published, 'kube.binaries')}require k8s.io/kubernetes ${versions.kubernetes}\nrequire go.etcd.io/etcd/server/v3 ${versions.etcd}\n`
}

function renamed(goMod: string, name: string): string {
  return `${goMod.replace(/^module .*$/m, `module ${name}`).trimEnd()}\n`
}
