/**
 * The same for Python (3.8 and later), found as `sitecustomize` through PYTHONPATH; one that was there before is run as well. Besides
 * `socket.bind` it changes what event loops are asked for: uvloop binds without Python's sockets, and asyncio would open one socket
 * for each family on an address that both now share.
 */
export const PYTHON_BIND_GUARD = `# Written by the platform at each start: changes are lost.
import errno
import importlib.machinery
import importlib.util
import os
import sys

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
_ALL = ('', '0', '0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::0', '::ffff:0.0.0.0')
_LOOPBACK = ('localhost', '127.0.0.1', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1')


def _text(host):
    return host.decode('ascii', 'replace') if isinstance(host, (bytes, bytearray)) else host


def _host_for(host, port, address):
    """None: as it was asked for."""
    host = '' if host is None else _text(host)
    if not isinstance(host, str):
        return None
    name = host.lower()
    if name not in _ALL and name not in _LOOPBACK:
        return None
    if port:
        return address
    return '127.0.0.1' if name in _ALL else None


def _guard_sockets(socket, address):
    bind = socket.socket.bind
    taken = set()

    def guarded_bind(self, place):
        try:
            stream = self.type == socket.SOCK_STREAM
            if self.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(place, tuple) or len(place) < 2:
                return bind(self, place)
            port = place[1]
            if not stream and not port:  # a client that sends datagrams
                return bind(self, place)
            host = _host_for(place[0], port, address)
        except Exception:
            return bind(self, place)
        if host is None:
            return bind(self, place)
        if self.family == socket.AF_INET:
            result = bind(self, (host, port))
        elif not port:
            result = bind(self, ('::1', 0))
        else:
            only = self.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            try:
                result = bind(self, ('::ffff:' + host, port))
            except OSError as error:
                # The twin of a socket that this program has just bound for IPv4: it may live where nobody looks.
                if error.errno != errno.EADDRINUSE or not only or (self.type, port) not in taken:
                    raise
                return bind(self, ('::1', 0))
        taken.add((self.type, port))
        return result

    socket.socket.bind = guarded_bind


def _guard_loop(loop_class, address):
    create_server = loop_class.create_server
    create_datagram_endpoint = loop_class.create_datagram_endpoint

    async def guarded_create_server(self, protocol_factory, host=None, port=None, **options):
        if options.get('sock') is None:
            if host is None or isinstance(host, (str, bytes)):
                moved = _host_for(host, port, address)
                host = host if moved is None else moved
            else:
                hosts = []
                for one in host:
                    moved = _host_for(one, port, address)
                    one = one if moved is None else moved
                    if one not in hosts:
                        hosts.append(one)
                host = hosts
        return await create_server(self, protocol_factory, host, port, **options)

    async def guarded_create_datagram_endpoint(self, protocol_factory, local_addr=None, remote_addr=None, **options):
        if isinstance(local_addr, tuple) and len(local_addr) >= 2 and local_addr[1]:
            moved = _host_for(local_addr[0], local_addr[1], address)
            local_addr = local_addr if moved is None else (moved, local_addr[1])
        return await create_datagram_endpoint(self, protocol_factory, local_addr, remote_addr, **options)

    loop_class.create_server = guarded_create_server
    loop_class.create_datagram_endpoint = guarded_create_datagram_endpoint


class _AfterImport:
    """Patches a module when, and only when, the program imports it."""

    def __init__(self, patches):
        self._patches = patches

    def find_spec(self, name, path=None, target=None):
        patch = self._patches.pop(name, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                patch(module)
            except Exception as error:
                sys.stderr.write('bind guard: %s is not guarded: %s\\n' % (name, error))

        spec.loader.exec_module = exec_module
        return spec


def _guard(address):
    patches = {
        'socket': lambda module: _guard_sockets(module, address),
        'asyncio.base_events': lambda module: _guard_loop(module.BaseEventLoop, address),
        'uvloop': lambda module: _guard_loop(module.Loop, address),
    }
    for name in [name for name in patches if name in sys.modules]:
        patches.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _AfterImport(patches))


def _run_the_other():
    here = os.path.normcase(_OWN_FOLDER)
    others = [entry for entry in sys.path if os.path.normcase(os.path.abspath(entry or '.')) != here]
    spec = importlib.machinery.PathFinder.find_spec('sitecustomize', others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules['sitecustomize'] = module
    spec.loader.exec_module(module)


if os.environ.get('THV_BIND_ADDRESS'):
    _guard(os.environ['THV_BIND_ADDRESS'])
_run_the_other()
`
