package golang_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAnApprovedRequestGetsACertificateThatIsAccepted(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane", Organization: []string{"dev"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	check(t, err)
	seconds := int32(3600)
	requests := typed.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "jane-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
			ExpirationSeconds: &seconds,
		},
	}, metav1.CreateOptions{})
	check(t, err)
	made.Status.Conditions = append(made.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	_, err = requests.UpdateApproval(t.Context(), made.Name, made, metav1.UpdateOptions{})
	check(t, err)
	var certificate []byte
	eventually(t, "the certificate is signed", func() (bool, error) {
		found, err := requests.Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		certificate = found.Status.Certificate
		return len(certificate) > 0, nil
	})
	encoded, err := x509.MarshalECPrivateKey(key)
	check(t, err)
	own := rest.AnonymousClientConfig(config)
	own.CertData = certificate
	own.KeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	jane, err := kubernetes.NewForConfig(own)
	check(t, err)
	review, err := jane.AuthenticationV1().SelfSubjectReviews().Create(
		t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	check(t, err)
	expect(t, "user", review.Status.UserInfo.Username, "jane")
	expect(t, "group", review.Status.UserInfo.Groups[0], "dev")
	check(t, requests.Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
}

func TestAServiceAccountMayDoWhatItsRoleSays(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	accounts := typed.CoreV1().ServiceAccounts(ns)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	check(t, err)
	issued, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	check(t, err)
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = issued.Status.Token
	robot, err := kubernetes.NewForConfig(own)
	check(t, err)
	_, err = robot.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	expect(t, "forbidden", apierrors.IsForbidden(err), true)
	rules := []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	_, err = typed.RbacV1().Roles(ns).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "lister"}, Rules: rules}, metav1.CreateOptions{})
	check(t, err)
	_, err = typed.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "robot-lists"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lister"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: ns}},
	}, metav1.CreateOptions{})
	check(t, err)
	eventually(t, "the robot may list pods", func() (bool, error) {
		_, err := robot.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil, err
	})
	secrets := typed.CoreV1().Secrets(ns)
	_, err = secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "robot", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	check(t, err)
	kept := rest.AnonymousClientConfig(config)
	eventually(t, "the Secret has a token", func() (bool, error) {
		found, err := secrets.Get(t.Context(), "robot", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		kept.BearerToken, kept.CAData = string(found.Data["token"]), found.Data["ca.crt"]
		return kept.BearerToken != "", nil
	})
	again, err := kubernetes.NewForConfig(kept)
	check(t, err)
	_, err = again.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	check(t, err)
	asked := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "delete", Resource: "pods"},
	}}
	review, err := robot.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), asked, metav1.CreateOptions{})
	check(t, err)
	expect(t, "may delete", review.Status.Allowed, false)
}
