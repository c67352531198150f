import { createLogger } from '@thv/telemetry/log'
import type { PostgresConfig } from '../../../config/registry-config.ts'

export const quiet = createLogger({ write: () => {} })

export function configOf(
  database: Pick<PostgresConfig, 'host' | 'port' | 'database' | 'user'> & { readonly password?: string },
  more: Partial<PostgresConfig> = {},
): PostgresConfig {
  const { host, port, database: name, user, password } = database
  return {
    kind: 'postgres',
    host,
    port,
    database: name,
    user,
    ...(password !== undefined && { password }),
    sslMode: 'disable',
    maxOpenConns: 8,
    maxIdleConns: 2,
    connMaxLifetimeMs: 600_000,
    ...more,
  }
}
