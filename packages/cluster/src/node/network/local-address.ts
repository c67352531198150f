import type { Service } from '@thv/kube'

/** Where the first TCP port of a Service is to be found from the host, where its cluster IP is not. Read it before `clusterIP`. */
const LOCAL_ADDRESS = 'toolhive.stacklok.dev/local-address'

/** The annotation of one port: the first has the plain key, each other one has its number behind. */
function localAddressKey(service: Pick<Service, 'spec'>, port: number): string {
  const first = service.spec?.ports?.find(({ protocol = 'TCP' }) => protocol === 'TCP')?.port
  return port === first ? LOCAL_ADDRESS : `${LOCAL_ADDRESS}-${port}`
}

/** The local port that a Service port had in the last run. */
export function localPortOf(service: Service, port: number): number | undefined {
  const text = service.metadata.annotations?.[localAddressKey(service, port)]
  const local = Number(/^127\.0\.0\.1:(\d{1,5})$/.exec(text ?? '')?.[1])
  return local >= 1_024 && local <= 65_535 ? local : undefined
}

/** As a merge patch; undefined when the annotations say it already. Annotations of ports that are gone go too. */
export function localAddressPatch(service: Service, addresses: ReadonlyMap<number, string>): object | undefined {
  const wanted = new Map([...addresses].map(([port, address]) => [localAddressKey(service, port), address]))
  const present = service.metadata.annotations ?? {}
  const changes: Record<string, string | null> = {}
  for (const [key, address] of wanted) if (present[key] !== address) changes[key] = address
  for (const key of Object.keys(present)) {
    if ((key === LOCAL_ADDRESS || key.startsWith(`${LOCAL_ADDRESS}-`)) && !wanted.has(key)) changes[key] = null
  }
  return Object.keys(changes).length === 0 ? undefined : { metadata: { annotations: changes } }
}
