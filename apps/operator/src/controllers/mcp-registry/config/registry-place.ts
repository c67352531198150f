/* Where the API pod finds its files. */

export const CONFIG_FOLDER = '/config'
export const CONFIG_FILE = 'config.yaml'
export const DATA_FOLDER = '/data'
export const DATABASE_FILE = `${DATA_FOLDER}/registry.db`
export const PGPASS_FOLDER = '/pgpass'

export const CONFIG_VOLUME = 'registry-server-config'
/** A user volume of this name takes the place of the emptyDir. */
export const STORAGE_VOLUME = 'storage-data'
export const PGPASS_VOLUME = 'pgpass-secret'
export const TMP_VOLUME = 'tmp'

export const sourceVolume = (entry: string): string => `registry-data-source-${entry}`
export const sourceFolder = (entry: string): string => `/registry/${entry}`
export const secretFolder = (secret: string): string => `/secrets/${secret}`
export const certificateFolder = (configMap: string): string => `/certs/${configMap}`
