import { readFile, stat } from 'node:fs/promises'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { MAX_CONFIG_BYTES, readVmcpConfig } from '@thv/vmcpconfig/read-vmcp-config'
import { unsupportedParts } from '@thv/vmcpconfig/unsupported-parts'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { invalidVmcpConfig, unsupportedVmcpConfig } from '@thv/vmcpconfig/vmcp-config-errors'

/** The file, or an error that names each field. Parts that are not built are errors too. */
export async function loadVmcpConfig(file: string): Promise<VmcpConfig> {
  const read = readVmcpConfig(await readText(file))
  if (!read.ok) throw invalidVmcpConfig(file, read.problems)
  const unsupported = unsupportedParts(read.config)
  if (unsupported.length > 0) throw unsupportedVmcpConfig(file, unsupported)
  return read.config
}

async function readText(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > MAX_CONFIG_BYTES)
      throw invalidVmcpConfig(file, [{ path: '', message: `is larger than ${MAX_CONFIG_BYTES} bytes` }])
    return await readFile(file, 'utf8')
  } catch (error) {
    if (error instanceof ThvError) throw error
    throw new ThvError('vmcp_config_invalid', `configuration ${file} cannot be read: ${errorMessage(error)}`)
  }
}
