package bolt

import "testing"

func TestNetworkFileSystems(t *testing.T) {
	for kind, want := range map[int64]string{0x6969: "NFS", 0xff534d42: "SMB/CIFS", 0xfe534d42: "SMB/CIFS", 0x517b: "SMB/CIFS", 0xef53: "", 0x01021994: ""} {
		if got := networkFileSystemName(kind); got != want {
			t.Errorf("%#x is %q, want %q", kind, got, want)
		}
	}
}
