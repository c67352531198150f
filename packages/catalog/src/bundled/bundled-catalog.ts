import catalog from './catalog.json' with { type: 'json' }

/** Well-known public servers in the upstream format: served by a registry without any source. */
export const bundledCatalog: unknown = catalog
