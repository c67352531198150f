import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { AuthConfig } from '../access/auth-config.ts'
import type { RegistrySpec } from '../store/registry-store.ts'

/** The configuration after reading: checked, defaults filled in, both forms of the file brought to one. */
export interface RegistryConfig {
  /** The server's name in its answers. */
  readonly registryName?: string
  /** The text that was last asked with; each fetched source carries it too, so that another one makes it due. */
  readonly syncRequest?: string
  readonly sources: readonly SourceConfig[]
  readonly registries: readonly RegistrySpec[]
  readonly auth: AuthConfig
  readonly storage: StorageConfig
  readonly http: HttpConfig
  readonly sync: SyncConfig
}

export type StorageConfig = SqliteConfig | PostgresConfig

export interface SqliteConfig {
  readonly kind: 'sqlite'
  /** Of the file; undefined keeps everything in memory. */
  readonly path?: string
}

export interface PostgresConfig {
  readonly kind: 'postgres'
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** Undefined: PGPASSFILE, then ~/.pgpass, then none. */
  readonly password?: string
  readonly migrationUser?: string
  readonly migrationPassword?: string
  readonly sslMode: 'disable' | 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full'
  readonly sslRootCert?: string
  readonly maxOpenConns: number
  readonly maxIdleConns: number
  readonly connMaxLifetimeMs: number
}

export interface HttpConfig {
  readonly cors?: { readonly origins: readonly string[]; readonly maxAgeSeconds: number }
  /** Host names of requests; undefined: any, or those of this machine where authentication is disabled. */
  readonly allowedHosts?: readonly string[]
  /** Gzip for clients that take it; on unless told otherwise. */
  readonly compression: boolean
  /** `max-age` of reads; 0 asks clients to revalidate each time. */
  readonly cacheSeconds: number
  /** /health, /readiness and /version also on the public address. */
  readonly publicHealth: boolean
  readonly maxBodyBytes: number
}

export interface SyncConfig {
  /** Sources that sync at the same time. One that does not answer does not count. */
  readonly parallel: number
  readonly leaseMs: number
  /** First retry after a failure; doubles up to the source's interval. */
  readonly retryMs: number
  /** Of an interval that is random. */
  readonly jitter: number
  /** Absolute. Files of sources made through the API must lie below one of them. */
  readonly allowedFolders: readonly string[]
  readonly allowPrivateAddresses: boolean
  readonly maxFileBytes: number
}
