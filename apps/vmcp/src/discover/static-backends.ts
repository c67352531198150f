import { readFile } from 'node:fs/promises'
import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { Log } from '@thv/telemetry/log'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { checkHeaderVariables, type Env } from './forwarded-headers.ts'
import { invalid, resolveBackend } from './resolve-backend.ts'
import type { ResolvedBackend } from './resolved-backend.ts'

/** The backends of the file, sorted by name. Throws `vmcp_config_invalid`, naming the field. */
export async function staticBackends(config: VmcpConfig, env: Env, log: Log): Promise<readonly ResolvedBackend[]> {
  checkHeaderVariables(
    config.backends.map(({ name }) => name),
    env,
  )
  const resolved = await Promise.all(
    config.backends.map(async (backend) => {
      const { name, caBundlePath } = backend
      const ca = caBundlePath === undefined ? undefined : await readBundle(caBundlePath, name, log)
      return resolveBackend({ backend, ca, env }, config)
    }),
  )
  return resolved.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

async function readBundle(path: string, name: string, log: Log): Promise<CaBundle> {
  const pem = await readFile(mountedPath(path), 'utf8').catch((error: unknown) => {
    throw invalid(`backends.${name}.caBundlePath: ${path} cannot be read: ${errorMessage(error)}`)
  })
  const bundle = parsedBundle(pem, path, name)
  for (const subject of bundle.expired) log.warn('a certificate of the CA bundle has expired', { backend: name, path, subject })
  return bundle
}

function parsedBundle(pem: string, path: string, name: string): CaBundle {
  try {
    return parseCaBundle(pem, { name: path })
  } catch (error) {
    if (isThvError(error, 'ca_bundle_invalid')) throw invalid(`backends.${name}.caBundlePath: ${error.message}`)
    throw error
  }
}
