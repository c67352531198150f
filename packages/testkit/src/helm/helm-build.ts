import { versions } from '../cluster/programs/kubernetes-version.ts'
import type { GoBuildOptions } from '../cluster/programs/run-go.ts'
import { buildFromModule } from '../go-programs/module-build.ts'

/** Its Kubernetes libraries are of the same minor version as our API server; Go 1.24 builds it. */
export const helmVersion = 'v3.19.0'

const modulePath = 'helm.sh/helm/v3'

/** Builds helm from its Go module in a throw-away folder and returns where it lies. */
export function buildHelm(workFolder: string, options: GoBuildOptions): Promise<string> {
  return buildFromModule({ name: 'helm', module: modulePath, version: helmVersion, goMod: moduleFile, buildArguments }, workFolder, options)
}

/** A main module of ours that takes the Kubernetes libraries of our API server: what Go compiled for that is not compiled again. */
export function moduleFile(source: string): string {
  const same = source
    .replace(/^module .*$/m, 'module helm.binary')
    .replace(/^(\s*k8s\.io\/\S+) v0\.\d+\.\d+(?=\s|$)/gm, (_, path: string) => `${path} ${versions.staging}`)
  return `${same.trimEnd()}\nrequire ${modulePath} ${helmVersion}\n`
}

/** The same flags as for the Kubernetes binaries, for the same reason. Without the stamps helm takes the cluster for a 1.20. */
export function buildArguments(output: string): string[] {
  const stamps = [
    `${modulePath}/internal/version.version=${helmVersion}`,
    ...['pkg/lint/rules', 'pkg/chartutil'].flatMap((path) => [
      `${modulePath}/${path}.k8sVersionMajor=${versions.major}`,
      `${modulePath}/${path}.k8sVersionMinor=${versions.minor}`,
    ]),
  ]
  const ldflags = ['-s', '-w', ...stamps.map((stamp) => `-X ${stamp}`)].join(' ')
  return ['build', '-gcflags=all=-dwarf=false', '-ldflags', ldflags, '-o', output, `${modulePath}/cmd/helm`]
}
