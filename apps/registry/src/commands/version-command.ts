import { VERSION } from '../serve/version.ts'
import type { CommandEnv } from './command-env.ts'

export function versionCommand({ format }: { readonly format: string }, { out }: CommandEnv): void {
  const { version, commit, buildDate } = VERSION
  const platform = `${process.platform}/${process.arch}`
  if (format === 'json') {
    out(`${JSON.stringify({ version, commit, build_date: buildDate, node_version: process.version, platform }, null, 2)}\n`)
  } else out(`thv-registry-api ${version} (commit ${commit}, Node ${process.version}, ${platform})\n`)
}
