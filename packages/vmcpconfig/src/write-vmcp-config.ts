import type { Problem } from '@thv/runconfig/field'
import { stringify } from 'yaml'
import type { VmcpProblem } from './composite-rules.ts'
import { MAX_CONFIG_BYTES, readVmcpDocument } from './read-vmcp-config.ts'
import { unsupportedParts } from './unsupported-parts.ts'
import type { VmcpConfig } from './vmcp-config.ts'

/** A configuration to write: members that are left out have the reader's defaults. */
export type VmcpDocument = Pick<VmcpConfig, 'name' | 'groupRef'> & Partial<Writable<VmcpConfig>>

/** Blocks may be incomplete, too. */
type Writable<T> = { readonly [K in keyof T]: T[K] extends readonly (infer Item)[] | undefined ? readonly Partial<Item>[] : Partial<T[K]> }

export type WrittenVmcpConfig =
  | {
      readonly ok: true
      /** YAML. */
      readonly text: string
      /** As the program reads it, with all defaults. */
      readonly config: VmcpConfig
      /** Parts that the program of this version refuses. */
      readonly unsupported: readonly Problem[]
    }
  | { readonly ok: false; readonly problems: readonly VmcpProblem[] }

/** The text of a configuration file, checked by the rules of its reader. Pure: equal documents give equal texts. */
export function writeVmcpConfig(document: VmcpDocument): WrittenVmcpConfig {
  const plain: unknown = JSON.parse(JSON.stringify(document))
  const read = readVmcpDocument(plain)
  if (!read.ok) return read
  const text = stringify(plain, { lineWidth: 0, aliasDuplicateObjects: false })
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES)
    return { ok: false, problems: [{ path: '', message: `is larger than ${MAX_CONFIG_BYTES} bytes` }] }
  return { ok: true, text, config: read.config, unsupported: unsupportedParts(read.config) }
}
