import type { GoBuildOptions } from '../cluster/programs/run-go.ts'
import { buildFromModule } from '../go-programs/module-build.ts'

/** Implements the Gateway API 1.4; Go 1.25 builds it. */
export const traefikVersion = 'v3.6.12'
export const traefikGo = { major: 1, minor: 25 } as const

const modulePath = 'github.com/traefik/traefik/v3'

/** Builds Traefik from its Go module in a throw-away folder and returns where it lies. */
export function buildTraefik(workFolder: string, options: GoBuildOptions): Promise<string> {
  const program = { name: 'traefik', module: modulePath, version: traefikVersion, goMod: moduleFile, buildArguments }
  return buildFromModule(program, workFolder, options)
}

/** A main module of ours with the versions, replacements and exclusions of Traefik's own. */
export function moduleFile(source: string): string {
  return `${source.replace(/^module .*$/m, 'module traefik.binary').trimEnd()}\nrequire ${modulePath} ${traefikVersion}\n`
}

export function buildArguments(output: string): string[] {
  const ldflags = `-s -w -X ${modulePath}/pkg/version.Version=${traefikVersion.slice(1)}`
  return ['build', '-gcflags=all=-dwarf=false', '-ldflags', ldflags, '-o', output, `${modulePath}/cmd/traefik`]
}
