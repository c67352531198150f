import catalogue from './catalogue.json' with { type: 'json' }

/** Well-known public servers in the upstream format: what a registry serves that was told of no source. */
export const bundledCatalogue: unknown = catalogue
