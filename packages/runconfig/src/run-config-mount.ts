import { createHash } from 'node:crypto'

/*
 * How the document gets from the operator into a runner's pod: a ConfigMap of one key, mounted as a folder, and two variables that say
 * which content the pod was made for.
 */

export const RUN_CONFIG_KEY = 'runconfig.json'
export const RUN_CONFIG_FOLDER = '/etc/runconfig'

/** SHA-256 (hex) of the file that the pod was made for; the operator writes it into the pod template. */
export const CHECKSUM_VARIABLE = 'THV_RUNCONFIG_CHECKSUM'
export const GENERATION_VARIABLE = 'THV_MCPSERVER_GENERATION'

export function runConfigChecksum(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
