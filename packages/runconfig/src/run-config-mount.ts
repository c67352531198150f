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

/*
 * Policies are in a ConfigMap of their own, which no variable names: pods stay when it changes, and the runner reads the file again.
 */

export const AUTHZ_KEY = 'authz.json'
export const AUTHZ_FOLDER = '/etc/toolhive/authz'
/** `authz_config_path` of the RunConfig. */
export const AUTHZ_PATH = `${AUTHZ_FOLDER}/${AUTHZ_KEY}`

/** Name of the ConfigMap. */
export function authzConfigMapName(workload: string): string {
  return `${workload}-authz`
}

export function runConfigChecksum(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
