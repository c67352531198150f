import { readFile, stat } from 'node:fs/promises'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { MAX_CONFIG_BYTES, readVmcpConfig } from '@thv/vmcpconfig/read-vmcp-config'
import { unsupportedParts } from '@thv/vmcpconfig/unsupported-parts'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { invalidVmcpConfig, unsupportedVmcpConfig } from '@thv/vmcpconfig/vmcp-config-errors'

/** The file, or an error that names each field. Parts that are not built are errors too. */
export async function loadVmcpConfig(file: string): Promise<VmcpConfig> {
  return parseVmcpConfig(await readConfigText(file), file)
}

/** As `loadVmcpConfig`, for a text; `source` is its name in messages. */
export function parseVmcpConfig(text: string, source: string): VmcpConfig {
  const read = readVmcpConfig(text)
  if (!read.ok) throw invalidVmcpConfig(source, read.problems)
  const unsupported = unsupportedParts(read.config)
  if (unsupported.length > 0) throw unsupportedVmcpConfig(source, unsupported)
  return read.config
}

export async function readConfigText(file: string): Promise<string> {
  const path = mountedPath(file)
  try {
    if ((await stat(path)).size > MAX_CONFIG_BYTES)
      throw invalidVmcpConfig(file, [{ path: '', message: `is larger than ${MAX_CONFIG_BYTES} bytes` }])
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof ThvError) throw error
    throw new ThvError('vmcp_config_invalid', `configuration ${file} cannot be read: ${errorMessage(error)}`)
  }
}
